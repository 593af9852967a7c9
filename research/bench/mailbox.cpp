// The mailbox between two ranks of one node, beside what bounds it: a memory copy, and a bare put with its flush.
//
//   mpirun -n 2 mailbox
//
// Both ranks drive their mailboxes themselves, as a communication thread does while there is something to do. Packets
// of 1 MB are sealed (checksum), put, checked and popped as fast as the ring takes them; the copy is that of as many
// bytes by one rank. Packets of 64 bytes go to and fro, and so does a bare put of 64 bytes that the target polls for.
// The first packet of every kind is compared with what was sent.
#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/timing.hpp"
#include "hearsay_version.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/transport/ledger.hpp"
#include "runtime/transport/mailbox.hpp"

namespace {

using namespace hearsay;

constexpr std::size_t large = 1'000'000, small = 64;  // bytes of a packet
constexpr std::size_t scratch = 4096;                 // of the window, in front of the rings: for bare puts

struct Options {
  int blocks = 15, packets = 100, rounds = 2000;
  bool json = false;
};

std::shared_ptr<OutgoingPacket> packet_of(std::size_t bytes) {
  auto packet = std::make_shared<OutgoingPacket>();
  packet->bytes.resize(bytes);
  for (std::size_t i = sizeof(PacketHeader); i < bytes; ++i) packet->bytes[i] = static_cast<std::byte>(i * 7);
  return packet;
}

/// A window seen from `scratch` on.
class Behind final : public RemoteMemory {
 public:
  explicit Behind(mpi::Window& window) : window_(window) {}
  std::span<std::byte> own() override { return window_.own().subspan(scratch); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    window_.put(bytes, target, scratch + offset);
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    window_.store(word, target, scratch + offset);
  }
  bool flush(int target) override { return window_.flush(target); }
  void sync() override { window_.sync(); }
  int patience() const override { return window_.patience(); }

 private:
  mpi::Window& window_;
};

/// One of two ranks.
class Side {
 public:
  Side(mpi::Communicator& world, const Topology& topology)
      : world_(world),
        rank_(world.rank()),
        window_(scratch + MailboxMap{.degree = 1, .capacity_bytes = capacity}.total_bytes()),
        memory_(window_),
        ledger_(1, 0),
        mailbox_(memory_, topology, rank_, capacity, ledger_) {}

  /// Seconds a packet, from a common start until the last one is popped.
  double stream(int packets) {
    const auto packet = packet_of(large);
    world_.barrier();
    double seconds[1] = {seconds_taken([&] {
      for (int i = 0; i < packets; ++i) {
        rank_ == 0 ? send(packet) : take(*packet);
        if (rank_ == 1) mailbox_.progress();  // returns the place
      }
    })};
    if (rank_ == 0) drain();
    world_.maximum(seconds);
    return seconds[0] / packets;
  }
  /// Seconds one way, of every round trip; on rank 0.
  std::vector<double> bounce(int rounds) {
    const auto packet = packet_of(small);
    return round_trips(rounds, [&](bool sends) { sends ? send(packet) : take(*packet); });
  }
  /// The same with bare puts.
  std::vector<double> bounce_bare(int rounds) {
    std::array<std::uint64_t, small / sizeof(std::uint64_t)> words{};
    auto* const flag = reinterpret_cast<std::uint64_t*>(window_.own().data() + small - sizeof(std::uint64_t));
    return round_trips(rounds, [&](bool sends) {
      if (sends) {
        words.back() = ++sent_;
        window_.put(std::as_bytes(std::span(words)), 1 - rank_, 0);
        while (!window_.flush(1 - rank_)) {
        }
      } else {
        ++expected_;
        while (std::atomic_ref(*flag).load(std::memory_order_acquire) != expected_) window_.sync();
      }
    });
  }
  /// Seconds to copy a large packet from one of several places to one of several others, by this rank alone.
  double copy(int packets) {
    constexpr std::size_t places = 4;
    static std::vector<std::byte> from(places * large, std::byte{1}), to(places * large);
    double seconds[1] = {0.0};
    world_.barrier();
    if (rank_ == 0)
      seconds[0] = seconds_taken([&] {
        for (int i = 0; i < packets; ++i) {
          const std::size_t at = static_cast<std::size_t>(i) % places * large;
          std::memcpy(to.data() + at, from.data() + at, large);
          asm volatile("" : : "r"(to.data()) : "memory");
        }
      });
    world_.maximum(seconds);
    return seconds[0] / packets;
  }

 private:
  static inline const std::size_t capacity = MailboxMap::capacity_for(large);

  void send(const std::shared_ptr<OutgoingPacket>& packet) {
    while (packet.use_count() > 1 || !mailbox_.fits(0, packet->bytes.size())) mailbox_.progress();
    seal_packet(packet->bytes, rank_, k_++, 0);
    mailbox_.post(0, packet);
    mailbox_.progress();
  }
  void take(const OutgoingPacket& expected) {
    auto came = mailbox_.front(0);
    for (; !came; came = mailbox_.front(0)) mailbox_.progress();
    if (!std::exchange(verified_, true)) {
      const auto body = came->subspan(sizeof(PacketHeader));
      if (!std::ranges::equal(body, std::span(expected.bytes).subspan(sizeof(PacketHeader))))
        throw std::logic_error("mailbox: the first packet is not what was sent");
    }
    mailbox_.pop(0);
  }
  void drain() {
    while (mailbox_.sending()) mailbox_.progress();
  }
  template <class Step>
  std::vector<double> round_trips(int rounds, Step step) {
    std::vector<double> seconds;
    verified_ = false;
    world_.barrier();
    for (int i = 0; i < rounds; ++i)
      seconds.push_back(0.5 * seconds_taken([&] { step(rank_ == 0), step(rank_ == 1); }));
    drain();
    return seconds;
  }

  mpi::Communicator& world_;
  int rank_;
  mpi::Window window_;
  Behind memory_;
  Ledger ledger_;
  Mailbox mailbox_;
  Iteration k_ = 0;
  std::uint64_t sent_ = 0, expected_ = 0;
  bool verified_ = false;
};

struct Figures {
  std::vector<double> stream_s, copy_s, bounce_s, bare_s;
};

void line(const Options& options, const char* kernel, const std::vector<double>& seconds, const char* floor,
          const std::vector<double>& floor_seconds, double target) {
  const double ratio = median(seconds) / median(floor_seconds);
  if (options.json) {
    const nlohmann::ordered_json json{{"kernel", kernel},
                                      {"repetitions", seconds.size()},
                                      {"median_s", median(seconds)},
                                      {"p99_s", quantile(seconds, 0.99)},
                                      {"floor", floor},
                                      {"ratio", ratio},
                                      {"target", "≤ " + std::to_string(target).substr(0, 4)},
                                      {"met", ratio <= target},
                                      {"machine", processor_name()},
                                      {"hearsay", std::string(full_version)}};
    std::cout << json.dump() << "\n";
  } else {
    std::printf("%-22s p50 %9.3f µs  p99 %9.3f µs   %-12s p50 %9.3f µs   ratio %.2f, target ≤ %.2f: %s\n", kernel,
                1e6 * median(seconds), 1e6 * quantile(seconds, 0.99), floor, 1e6 * median(floor_seconds), ratio, target,
                ratio <= target ? "met" : "missed");
  }
}

void run(const Options& options, const mpi::Environment& environment) {
  if (environment.ranks() != 2) throw std::invalid_argument("needs two ranks: mpirun -n 2 mailbox");
  mpi::Communicator world;
  Config config = Config::from_text("graph: {name: complete}");
  const Topology topology = TopologyPlan(config).build(2);
  Figures figures;
  {
    Side side(world, topology);
    side.stream(options.packets), side.copy(options.packets);  // warms up
    for (int block = 0; block < options.blocks; ++block) {
      figures.stream_s.push_back(side.stream(options.packets));
      figures.copy_s.push_back(side.copy(options.packets));
      const auto bounce = side.bounce(options.rounds), bare = side.bounce_bare(options.rounds);
      figures.bounce_s.insert(figures.bounce_s.end(), bounce.begin(), bounce.end());
      figures.bare_s.insert(figures.bare_s.end(), bare.begin(), bare.end());
    }
    world.barrier();
  }
  if (environment.rank() != 0) return;
  if (!options.json) std::printf("%s\n", processor_name().c_str());
  line(options, "mailbox/1MB", figures.stream_s, "copy", figures.copy_s, 1.0 / 0.7);
  line(options, "mailbox/64B", figures.bounce_s, "put + flush", figures.bare_s, 2.0);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The mailbox between two ranks of one node, beside a copy and a bare put", "mailbox");
  app.add_option("--blocks", options.blocks, "repetitions in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--packets", options.packets, "of 1 MB in a block")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--rounds", options.rounds, "to and fro in a block")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--json", options.json, "one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  const auto say = [](const std::exception& error) { std::fprintf(stderr, "mailbox: %s\n", error.what()); };
  try {
    const mpi::Environment environment;
    try {
      run(options, environment);
    } catch (const std::exception& error) {
      say(error);
      environment.abort(1);  // while there still is a job to end
    }
  } catch (const std::exception& error) {
    say(error);
    return 1;
  }
  return 0;
}
