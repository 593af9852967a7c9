#pragma once
// What a program needs that trains a model of its own: #include <hearsay/hearsay.hpp>
#include "base/config/config.hpp"
#include "base/error.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/job/start.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/session.hpp"
