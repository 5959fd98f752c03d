// Choices that have names.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace multimargin::inline base {

// The choice of that name; std::invalid_argument, naming all of them, when there is none.
template <class Choices>
const auto& find_choice(const char* what, std::string_view name, const Choices& choices) {
  for (const auto& choice : choices)
    if (choice.name == name) return choice;
  std::string message = "unknown " + std::string(what) + " '" + std::string(name) + "'; choose one of";
  for (const auto& choice : choices) message += " '" + std::string(choice.name) + "'";
  throw std::invalid_argument(message);
}

}  // namespace multimargin::base
