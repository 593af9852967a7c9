// Trace event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include "runtime/report/trace.hpp"

#include <cstdio>
#include <string>
#include <utility>

#include "runtime/report/files.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

enum Thread : int { computation = 0, communication = 1 };

Json named(const char* what, int rank, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

/// Packets of an edge arrive exactly once and in order, so both ends can count them.
std::string packet_id(int from, int to, std::size_t packet) {
  return std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(packet);
}

/// Events of one rank, in microseconds since the origin.
class EventList {
 public:
  EventList(int rank, TimePoint origin) : rank_(rank), origin_(origin) {
    events_ = Json::array({named("process_name", rank, computation, "rank " + std::to_string(rank)),
                           named("thread_name", rank, computation, "computation"),
                           named("thread_name", rank, communication, "communication")});
  }
  void span(const char* name, Thread thread, TimePoint from, TimePoint to, Json arguments) {
    Json event = at(name, "X", thread, from);
    event["dur"] = microseconds(to - from);
    event["args"] = std::move(arguments);
    events_.push_back(std::move(event));
  }
  void instant(const char* name, Thread thread, TimePoint when, Json arguments) {
    Json event = at(name, "i", thread, when);
    event["s"] = "t";
    event["args"] = std::move(arguments);
    events_.push_back(std::move(event));
  }
  void flow(bool ends, const std::string& id, Thread thread, TimePoint when) {
    Json event = at("packet", ends ? "f" : "s", thread, when);
    event["cat"] = "packet";
    event["id"] = id;
    if (ends) event["bp"] = "e";  // to the span around it, not to the next one
    events_.push_back(std::move(event));
  }
  Json take() { return std::move(events_); }

 private:
  static double microseconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::micro>(time).count();
  }
  Json at(const char* name, const char* kind, Thread thread, TimePoint when) const {
    return {{"name", name},
            {"cat", "phase"},
            {"ph", kind},
            {"pid", rank_},
            {"tid", static_cast<int>(thread)},
            {"ts", microseconds(when - origin_)}};
  }

  int rank_;
  TimePoint origin_;
  Json events_;
};

std::string trace_file(int rank) {
  char name[40];
  std::snprintf(name, sizeof name, "trace.rank%04d.json", rank);
  return name;
}

}  // namespace

Trace::Trace(Rank rank, Iteration iterations, TimePoint origin)
    : rank_(std::move(rank)),
      iterations_(iterations),
      origin_(origin),
      sent_(rank_.neighbours.size()),
      received_(rank_.neighbours.size()) {}

bool Trace::over() const { return iterations_ > 0 && iteration_.load(std::memory_order_relaxed) >= iterations_; }

void Trace::gradient(SegmentId segment, TimePoint at) {
  if (over()) return;
  const std::lock_guard lock(mutex_);
  gradients_.push_back({segment, at, iteration_});
}

void Trace::phase(const PhaseSpan& span) {
  if (over()) return;
  const std::lock_guard lock(mutex_);
  spans_.push_back({span, iteration_});
}

void Trace::packets_sent(std::size_t edge, std::size_t packets, TimePoint from, TimePoint to) {
  if (over()) return;
  const std::lock_guard lock(mutex_);
  puts_.push_back({edge, sent_[edge], packets, from, to, iteration_});
  sent_[edge] += packets;
}

void Trace::packet_taken(std::size_t edge, TimePoint at) {
  if (over()) return;
  const std::lock_guard lock(mutex_);
  taken_.push_back({edge, received_[edge]++, at});
}

void Trace::write(const std::filesystem::path& directory) const {
  EventList list(rank_.rank, origin_);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [span, iteration] : spans_) {
      Json arguments{{"iteration", iteration}};
      if (span.segments) arguments["segments"] = {span.segments->first, span.segments->last};
      list.span(phase_names[static_cast<std::size_t>(span.phase)],
                of_communication_thread(span.phase) ? communication : computation, span.from, span.to,
                std::move(arguments));
    }
    for (const Gradient& g : gradients_)
      list.instant("gradient", computation, g.at, {{"iteration", g.iteration}, {"segment", g.segment}});
    for (const Put& put : puts_) {
      const int to = rank_.neighbours[put.edge];
      list.span("put", communication, put.from, put.to,
                {{"iteration", put.iteration}, {"to", to}, {"packets", put.packets}});
      for (std::size_t i = 0; i < put.packets; ++i)
        list.flow(false, packet_id(rank_.rank, to, put.first_packet + i), communication, put.from);
    }
    for (const Taken& taken : taken_)
      list.flow(true, packet_id(rank_.neighbours[taken.edge], rank_.rank, taken.packet), computation, taken.at);
  }
  const Json trace{{"displayTimeUnit", "ms"},
                   {"otherData",
                    {{"schema_version", report_schema_version},
                     {"rank", rank_.rank},
                     {"ranks", rank_.ranks},
                     {"host", rank_.host},
                     {"run_id", rank_.run_id},
                     {"origin_us", std::chrono::duration<double, std::micro>(origin_).count()},
                     {"clock", "of the run, 0 at the start of training"}}},
                   {"traceEvents", list.take()}};
  write_file(directory / trace_file(rank_.rank), dumped(trace) + "\n");
}

}  // namespace hearsay
