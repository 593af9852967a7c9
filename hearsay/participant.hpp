#pragma once
// What a training loop of one's own needs, without LibTorch: #include <hearsay/participant.hpp>
#include "base/config/config.hpp"
#include "base/error.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/job/start.hpp"
