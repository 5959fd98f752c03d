# Fits kernlab's machines on command: one line of words in, one line "ok ..." or "error ..." out.
suppressMessages(library(kernlab))

commands <- file("stdin", open = "r")
state <- new.env()

matrix_in <- function(path, rows, columns)
  matrix(readBin(path, "double", n = rows * columns), nrow = rows, ncol = columns)

answer <- list(
  load = function(n, tested, d, train, labels, test) {
    state$x <- matrix_in(train, as.integer(n), as.integer(d))
    state$y <- factor(readBin(labels, "integer", n = as.integer(n), size = 4))
    state$test <- matrix_in(test, as.integer(tested), as.integer(d))
    NULL
  },
  fit = function(type, C, gamma, tol, cache) {
    took <- system.time(
      state$model <- ksvm(state$x, state$y, type = type, kernel = "rbfdot",
                          kpar = list(sigma = as.numeric(gamma)), C = as.numeric(C), scaled = FALSE,
                          tol = as.numeric(tol), cache = as.numeric(cache), fit = FALSE),
      gcFirst = TRUE)
    c(took[["elapsed"]], took[["user.self"]] + took[["sys.self"]])
  },
  predict = function(path) {
    writeBin(as.integer(predict(state$model, state$test)), path, size = 4)
    NULL
  },
  support = function() nSV(state$model),
  alpha = function(path) {
    writeBin(as.vector(alpha(state$model)), path)
    NULL
  }
)

while (length(line <- readLines(commands, n = 1)) > 0) {
  words <- strsplit(line, " ")[[1]]
  result <- tryCatch(
    c("ok", do.call(answer[[words[1]]], as.list(words[-1]))),
    error = function(e) c("error", gsub("\n", " ", conditionMessage(e))))
  cat(result, "\n")
  flush(stdout())
}
