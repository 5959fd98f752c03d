// A clock that jumps: preloaded, it moves the time of day by up to a day, forwards and backwards, at every look.
// Monotonic clocks stay as they are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) {
  static _Atomic unsigned long looks;
  return (long)(++looks * 2654435761ul % 172801ul) - 86400;
}

int clock_gettime(clockid_t which, struct timespec *found) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(which, found);
  if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) found->tv_sec += jump();
  return result;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  found->tv_sec = now.tv_sec;
  found->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found) *found = now.tv_sec;
  return now.tv_sec;
}
