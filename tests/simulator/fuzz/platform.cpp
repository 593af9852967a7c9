// A platform file of SimGrid's: a refusal, an Error, or a host for each rank, and routes between them. The engine, of
// which a process has one, is made once; what is not refused is read in a process of its own.
#include "runtime/mpi/simulated/platform.hpp"

#include <sys/wait.h>

#include <simgrid/s4u.hpp>

#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

constexpr int ranks = 4;
constexpr unsigned patience_s = 150;  // load_platform has its own, a minute
constexpr int refused = 2;

const std::string head =
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
    "<platform version=\"4.1\">\n";

simgrid::s4u::Engine& the_engine() {
  static std::string name = "fuzz", log = "--log=root.thres:critical", model = "--cfg=network/model:CM02";
  static char* arguments[]{name.data(), log.data(), model.data()};
  static int count = 3;
  static simgrid::s4u::Engine engine(&count, arguments);
  return engine;
}

/// In a process of its own, which this ends.
[[noreturn]] void read_platform(const std::filesystem::path& file) {
  try {
    const std::vector<simgrid::s4u::Host*> hosts = mpi::load_platform(the_engine(), file, ranks);
    require(hosts.size() == ranks, "a host for each rank");
    for (const simgrid::s4u::Host* host : hosts) {
      std::vector<simgrid::s4u::Link*> links;
      if (host != hosts.front()) host->route_to(hosts.front(), links, nullptr);
      for (const simgrid::s4u::Link* link : links) require(link->get_bandwidth() > 0.0, "links have a bandwidth");
    }
  } catch (const Error&) {
    std::_Exit(refused);
  }
  std::_Exit(EXIT_SUCCESS);
}

std::string route(const std::string& from, const std::string& to) {
  return "<route src=\"" + from + "\" dst=\"" + to + "\"><link_ctn id=\"l\"/></route>\n";
}

}  // namespace

std::vector<std::string> seeds() {
  return {head +
              "<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"111MBps\" lat=\"218us\" "
              "sharing_policy=\"SPLITDUPLEX\"/>\n</platform>\n",
          head +
              "<zone id=\"z\" routing=\"Floyd\">\n<cluster id=\"a\" prefix=\"n\" suffix=\"\" radical=\"0-2\" "
              "speed=\"1Gf\" bw=\"1MBps\" lat=\"2us\" router_id=\"ra\"/>\n<cluster id=\"b\" prefix=\"n\" suffix=\"\" "
              "radical=\"3-3\" speed=\"1Gf\" bw=\"1MBps\" lat=\"2us\" router_id=\"rb\"/>\n<link id=\"l\" "
              "bandwidth=\"10GBps\" latency=\"0us\" sharing_policy=\"FATPIPE\"/>\n<zoneRoute src=\"a\" dst=\"b\" "
              "gw_src=\"ra\" gw_dst=\"rb\"><link_ctn id=\"l\"/></zoneRoute>\n</zone>\n</platform>\n",
          head +
              "<zone id=\"z\" routing=\"Full\">\n<host id=\"h0\" speed=\"1Gf,2Gf\" core=\"2\"/>\n<host id=\"h1\" "
              "speed=\"98Mf\"><prop id=\"a\" value=\"b\"/></host>\n<host id=\"h2\" speed=\"1f\"/>\n<host id=\"h3\" "
              "speed=\"1f\"/>\n<link id=\"l\" bandwidth=\"1kBps\" latency=\"1ms\"/>\n" +
              route("h0", "h1") + route("h0", "h2") + route("h0", "h3") + route("h1", "h2") + route("h1", "h3") +
              route("h2", "h3") + "</zone>\n</platform>\n"};
}

std::vector<std::string> words() {
  return {"\"0-99999\"",
          "\"5-3\"",
          "\"-1\"",
          "\"1e999\"",
          "\"nan\"",
          "\"\"",
          "\"Floyd\"",
          "\"Dijkstra\"",
          "\"DijkstraCache\"",
          "\"Vivaldi\"",
          "\"Wifi\"",
          "\"None\"",
          "\"SHARED\"",
          "\"FULLDUPLEX\"",
          "\"1Bps\"",
          "\"1us\"",
          "<zone id=\"y\" routing=\"Full\">",
          "</zone>",
          "<host id=\"h4\" speed=\"1f\"/>",
          "<router id=\"r\"/>",
          "<link id=\"m\" bandwidth=\"1Bps\" latency=\"1s\"/>",
          "<link_ctn id=\"l\" direction=\"UP\"/>",
          "<backbone id=\"l\" bandwidth=\"1Bps\" latency=\"1s\"/>",
          "<cabinet id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-9\" speed=\"1f\" bw=\"1Bps\" lat=\"1s\"/>",
          "<peer id=\"p\" speed=\"1f\" bw_in=\"1Bps\" bw_out=\"1Bps\" coordinates=\"1 2 3\"/>",
          "<trace id=\"t\" periodicity=\"1\">0 1\n</trace>",
          "<trace_connect trace=\"t\" element=\"l\" kind=\"BANDWIDTH\"/>",
          "<storage_type id=\"s\" size=\"1\"/>",
          "<disk id=\"d\" read_bw=\"1Bps\" write_bw=\"1Bps\"/>",
          "<config><prop id=\"network/TCP-gamma\" value=\"x\"/></config>",
          "<include file=\"/dev/zero\"/>",
          "<actor host=\"h1\" function=\"f\"/>",
          "&amp;",
          "<!--"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  file.fill({data, size});
  ::alarm(fuzz::patience_s);
  if (!mpi::refusal(fuzz::the_engine(), file.path(), fuzz::ranks).empty()) return 0;
  const pid_t child = ::fork();
  fuzz::require(child >= 0, "a process");
  if (child == 0) fuzz::read_platform(file.path());
  int status = 0;
  ::waitpid(child, &status, 0);
  fuzz::require(WIFEXITED(status), "the reader ends by itself");
  fuzz::require(WEXITSTATUS(status) == EXIT_SUCCESS || WEXITSTATUS(status) == fuzz::refused, "hosts, or an Error");
  return 0;
}
