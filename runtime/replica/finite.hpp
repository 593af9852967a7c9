#pragma once
// Whose value it is that is not finite: the segment's name, for the message.
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "runtime/replica/layout.hpp"

namespace hearsay {

/// Throws `error` with the name of the segment that holds the first of `values` which is not finite; `values` begin at
/// `offset` of the block and are called `what`: "gradient", say.
[[noreturn]] void name_segment(const Layout& layout, std::size_t offset, std::span<const float> values,
                               std::string_view what, const DivergenceError& error);

/// Throws DivergenceError, naming the segment, unless all gradients are finite; `values` begin at `offset` of the
/// block. To be asked before gradients of several ranks are added: the sum does not tell whose it was. One read.
void require_finite_gradients(const Layout& layout, std::size_t offset, std::span<const float> values);

/// The same of `values` that are, or were made of, a sum of all ranks' gradients: each of those was finite, so two or
/// more together are too large for a float. All ranks have the same sum and throw alike.
void require_finite_sum(const Layout& layout, std::size_t offset, std::span<const float> values);

}  // namespace hearsay
