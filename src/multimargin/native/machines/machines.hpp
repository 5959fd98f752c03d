// All machines, by name.
#pragma once

#include "machines/c_svc.hpp"
#include "machines/crammer_singer.hpp"
#include "machines/lee_lin_wahba.hpp"
#include "machines/machine.hpp"
#include "machines/msvm2.hpp"
#include "machines/one_vs_rest.hpp"
#include "machines/weston_watkins.hpp"

namespace multimargin::machines {

template <class Machine, class Work>
auto call_for(Work& work) {
  return work(std::type_identity<Machine>{});
}

template <class... Machines, class Work>
auto with_one_of(std::string_view name, Work& work) {
  const std::array calls = {Choice{Machines::kName, &call_for<Machines, Work>}...};
  return find_choice("machine", name, calls).value(work);
}

// Calls work(std::type_identity<Machine>{}) for the machine of that name, one of those whose rows can be solved one at
// a time. Throws std::invalid_argument, which names all of them, if there is none.
template <class Work>
auto with_machine(std::string_view name, Work work) {
  return with_one_of<CrammerSinger, WestonWatkins, LeeLinWahba, Msvm2, OneVsRest>(name, work);
}

// The same for all machines whose rows can be measured.
template <class Work>
auto with_measured_machine(std::string_view name, Work work) {
  return with_one_of<CrammerSinger, WestonWatkins, LeeLinWahba, Msvm2, OneVsRest, CSvc>(name, work);
}

}  // namespace multimargin::machines
