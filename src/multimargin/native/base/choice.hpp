// Choices by name.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};

// Clang before 17 does not deduce the parameters of aggregates by itself.
template <class Name, class Value>
Choice(Name, Value) -> Choice<Value>;

// The choice of that name. Throws std::invalid_argument, which names all choices, if there is none.
template <class Choices>
const auto& find_choice(const char* what, std::string_view name, const Choices& choices) {
  for (const auto& choice : choices)
    if (choice.name == name) return choice;
  std::string message = "unknown " + std::string(what) + " '" + std::string(name) + "'; choose one of";
  for (const auto& choice : choices) message += " '" + std::string(choice.name) + "'";
  throw std::invalid_argument(message);
}

}  // namespace multimargin::base
