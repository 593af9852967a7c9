#pragma once
// What a configuration of the program can choose by name: exchanges and all that, models, data sets and optimizers.
#include "apps/tools/catalogue.hpp"

namespace hearsay {

Catalogue program_catalogue();

}  // namespace hearsay
