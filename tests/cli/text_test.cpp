// What the program prints: numbers, tables, comparisons, progress.
#include <doctest/doctest.h>

#include <limits>
#include <sstream>

#include "apps/hearsay/views/progress.hpp"
#include "apps/shared/long_work.hpp"
#include "apps/shared/text.hpp"
#include "apps/shared/train_report.hpp"
#include "apps/tools/comparison.hpp"
#include "base/text/foreign_text.hpp"

namespace text_test {

using namespace hearsay;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Summary finished(std::uint64_t messages, std::uint64_t bytes) {
  Summary s;
  s.ranks = 4;
  s.iterations = 1000;
  s.edges = 8;
  s.parameters = 27480;
  s.segments = 8;
  s.model = "mnist_cnn";
  s.dataset = "mnist";
  s.exchange = "eventgrad";
  s.schedule = "lockstep";
  s.accuracy_mean_model = 0.97125;
  s.accuracy_rank_min = 0.9;
  s.consensus_distance = 0.0123456;
  s.totals.messages = messages;
  s.totals.payload_bytes = bytes;
  s.messages_possible = 64000;
  s.time_per_iteration_s = 0.00123;
  s.wall_time_s = 1.23;
  s.replica_hashes = {messages, bytes, 3, 4};
  return s;
}

bool mentions(const std::vector<std::string>& notes, const std::string& words) {
  for (const std::string& note : notes)
    if (note.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("text of others is shown in tables, notes and outcomes, and a terminal obeys nothing of it") {
  const std::string evil = "\x1b]0;X\a\x1b[2J\nnote: fine";
  Summary run = finished(10, 10);
  run.status = run.message = run.model = evil;
  run.metrics = {{.metric = {.name = evil}, .mean_model = 1.0, .rank_worst = 1.0, .rank_mean = 1.0}};
  const std::vector<ComparedRun> runs{{evil, finished(10, 10), {}}, {"other" + evil, run, {}}};
  const std::string table = comparison_table(runs), outcome = outcome_text(run, evil, false);
  for (const std::string& text : {table, outcome}) {
    CHECK(shown_lines(text) == text);
    CHECK(text.find("\\x1b") != std::string::npos);
    CHECK(text.find("\nnote: fine") == std::string::npos);
  }
  CHECK(lines_of(table).size() == 4);
  CHECK(aligned_table({{"a\nb", "\x1b"}, {"c", "d"}}) == "a\\nb  \\x1b\nc        d\n");
}

TEST_CASE("numbers carry three digits that count and a unit") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(1234567) == "1,234,567");
  CHECK(byte_count(0) == "0 B");
  CHECK(byte_count(999) == "999 B");
  CHECK(byte_count(1000) == "1.00 kB");
  CHECK(byte_count(999.9e3) == "1.00 MB");
  CHECK(byte_count(4.12e6) == "4.12 MB");
  CHECK(byte_count(123.4e9) == "123 GB");
  CHECK(byte_count(not_a_number) == "–");
  CHECK(duration(0.0) == "0 s");
  CHECK(duration(812e-6) == "812 µs");
  CHECK(duration(1.234e-3) == "1.23 ms");
  CHECK(duration(12.34) == "12.3 s");
  CHECK(duration(200) == "3 min 20 s");
  CHECK(duration(7500) == "2 h 5 min");
  CHECK(duration(std::numeric_limits<double>::infinity()) == "–");
  CHECK(percent(0.3125, 1) == "31.2 %");
  CHECK(percent(not_a_number, 1) == "–");
  CHECK(percent(0.3125) == "31.2 %");
  CHECK(percent(0.0043) == "0.43 %");
  CHECK(percent(0.000432) == "0.043 %");
  CHECK(percent(0.0) == "0.0 %");
  CHECK(percent(not_a_number) == "–");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(1200, "rank") == "1,200 ranks");
}

TEST_CASE("no duration between units is written with the wrong one") {
  for (double seconds = 1e-6; seconds < 1e6; seconds *= 1.003) {
    const std::string text = duration(seconds);
    CAPTURE(text);
    CHECK(text.find("1000") == std::string::npos);
    CHECK(text.find(" 60 s") == std::string::npos);
    CHECK(text.find(" 60 min") == std::string::npos);
  }
}

TEST_CASE("columns line up, accents and dashes included") {
  const std::string table = aligned_table({{"a", "µs"}, {"–", "x"}, {"longer", "1,000"}});
  const auto lines = lines_of(table);
  REQUIRE(lines.size() == 3);
  for (const std::string& line : lines) CHECK(screen_width(line) == std::string("longer  1,000").size());
  CHECK(lines[0].starts_with("a      "));
}

TEST_CASE("wrapping keeps every word, in order, within the width") {
  const std::string text = "one two three four five six seven eight nine ten ‖x‖ eleven twelve";
  const std::string broken = wrapped(text, 20, 4);
  std::string words;
  for (const std::string& line : lines_of(broken)) {
    CHECK(screen_width(line) <= 20);
    std::istringstream stream(line);
    for (std::string word; stream >> word;) words += (words.empty() ? "" : " ") + word;
  }
  CHECK(words == text);
}

TEST_CASE("the comparison: percentages of the first run, at most 100 columns whatever the numbers") {
  const std::vector<ComparedRun> runs{
      {"runs/dpsgd", finished(64000, 880'000'000)},
      {"runs/event/", finished(16000, 220'000'000)},
      {"somewhere/a-very-long-name-of-a-run-folder-indeed", finished(98'765'432'109, 999'499'999'999'999)}};
  const auto lines = lines_of(comparison_table(runs));
  REQUIRE(lines.size() == 5);
  for (const std::string& line : lines) CHECK(screen_width(line) <= 100);
  CHECK(lines[2].starts_with("dpsgd "));
  CHECK(lines[2].find("97.12 %  90.00 %") != std::string::npos);
  CHECK(lines[3].starts_with("event "));
  CHECK(lines[3].find("25.0") != std::string::npos);
  CHECK(lines[3].find("16,000") != std::string::npos);
  CHECK(lines[4].starts_with("…"));
  CHECK(lines[4].find("run-folder-indeed") != std::string::npos);
  CHECK(comparison_notes(runs).empty());
}

TEST_CASE("the comparison says bits a value where single values are events, in the same 100 columns") {
  std::vector<ComparedRun> runs{
      {"runs/dpsgd", finished(64000, 880'000'000)},
      {"somewhere/a-very-long-name-of-a-run-folder-indeed", finished(98'765'432'109, 999'499'999'999'999)}};
  CHECK(comparison_table(runs).find("bits a") == std::string::npos);
  runs[1].summary.totals.value_events = 1;
  const auto lines = lines_of(comparison_table(runs));
  for (const std::string& line : lines) CHECK(screen_width(line) <= 100);
  CHECK(lines[0].find("bits a  time per") != std::string::npos);
}

TEST_CASE("simulated time is marked where it stands, and equal replicas are pointed out") {
  Summary simulated = finished(64000, 880'000'000);
  simulated.clock = "simulated";
  const std::vector<ComparedRun> runs{{"a", finished(64000, 880'000'000)}, {"b", simulated}, {"c", finished(7, 7)}};
  const auto lines = lines_of(comparison_table(runs));
  REQUIRE(lines.size() == 5);
  CHECK(lines[2].find('~') == std::string::npos);
  CHECK(lines[3].find("~1.23 ms") != std::string::npos);
  const auto notes = comparison_notes(runs);
  CHECK(notes.size() == 2);
  CHECK(mentions(notes, "~ the time of b is simulated"));
  CHECK(mentions(notes, "b ended with the replicas of the first run, to the last bit"));
}

TEST_CASE("folders of one name are told apart by their paths") {
  const std::vector<ComparedRun> runs{{"a/run", finished(1, 1)}, {"b/run/", finished(1, 1)}, {"c", finished(1, 1)}};
  CHECK(run_names(runs) == std::vector<std::string>{"a/run", "b/run", "c"});
}

TEST_CASE("a run that broke off shows dashes, not zeros, and a note; so does an unfair comparison") {
  Summary broken = finished(0, 0);
  broken.status = "diverged";
  broken.message = "the loss is nan";
  broken.iterations = 17;
  broken.replica_hashes.clear();
  broken.accuracy_mean_model.reset();
  broken.accuracy_rank_min.reset();
  Summary other = finished(10, 10);
  other.ranks = 8;
  other.model = "lenet5";
  other.dataset = "cifar10";
  const std::vector<ComparedRun> runs{{"base", finished(5, 5)}, {"broken", broken}, {"other", other}};
  const auto row = lines_of(comparison_table(runs))[3];
  std::istringstream cells(row);
  std::string cell;
  cells >> cell;
  CHECK(cell == "broken");
  while (cells >> cell) CHECK(cell == "–");
  const auto notes = comparison_notes(runs);
  CHECK(mentions(notes, "broken diverged after 17 iterations: the loss is nan"));
  CHECK(mentions(notes, "broken is another experiment than the first run: iterations 17 (baseline: 1000)."));
  CHECK(mentions(notes, "other is another experiment than the first run: ranks 8 (baseline: 4), model lenet5"));
  CHECK(mentions(notes, "data cifar10 (baseline: mnist)"));
  CHECK(notes.size() == 3);
}

TEST_CASE("who died and who came in their places is said, by number where they are many") {
  Summary some = finished(10, 10);
  some.ranks_lost = {{.rank = 3, .process = 3, .at_s = 12.0}, {.rank = std::nullopt, .process = 9, .at_s = 14.0}};
  Summary replaced = some;
  replaced.ranks_joined = {{.rank = 3, .process = 8, .at_s = 13.0}};
  Summary many = finished(10, 10);
  for (int r = 0; r < 5; ++r) many.ranks_lost.push_back({.rank = r, .process = r, .at_s = 1.0});
  const auto notes = comparison_notes({{"base", finished(10, 10)}, {"some", some}, {"back", replaced}, {"many", many}});
  CHECK(mentions(notes, "some lost rank 3 after 12.0 s, a spare after 14.0 s."));
  CHECK(mentions(notes,
                 "back lost rank 3 after 12.0 s, a spare after 14.0 s; in the places of dead ranks came process "
                 "8 (rank 3) after 13.0 s."));
  CHECK(mentions(notes, "many lost 5 ranks."));
  CHECK(!mentions(notes, "base lost"));
}

TEST_CASE("of a rank that dies between two rounds it is said which rounds miss it") {
  Summary run = finished(10, 10);
  run.ranks_lost = {{.rank = 2, .process = 2, .at_s = 8.0, .iterations = 31}};
  CHECK(outcome_text(run, "runs/outer", false).find("in its iteration 31\n") != std::string::npos);
  run.local_steps = 15;  // iterations 1 to 15 are its first round, 31 begins its third
  CHECK(outcome_text(run, "runs/outer", false)
            .find("in its iteration 31, round 3 of 15 local steps: from there on rounds go without it") !=
        std::string::npos);
}

TEST_CASE("of a run that was shorter than a round it is said that nothing was exchanged") {
  const auto said = [](std::int64_t iterations, std::int64_t local_steps, std::uint64_t bytes) {
    Summary run = finished(10, 10);
    run.ranks = 4;
    run.iterations = iterations;
    run.local_steps = local_steps;
    run.totals = {.payload_bytes = bytes};
    return outcome_text(run, "runs/outer", false).find("have exchanged nothing") != std::string::npos;
  };
  CHECK(said(12, 30, 0));
  CHECK(!said(12, 30, 8));  // a fragment's round, or what asynchronous ranks have mixed
  CHECK(!said(30, 30, 0));
  CHECK(!said(12, 1, 0));
}

TEST_CASE("runs of a task with another metric are compared by it, and mixed ones are said to be so") {
  Summary text = finished(10, 10);
  text.accuracy_mean_model.reset(), text.accuracy_rank_min.reset();
  text.take({.metric = bits_metric("character"), .mean_model = 2.7182818, .rank_worst = 3.25, .rank_mean = 3.0});
  text.take({.metric = accuracy_metric(), .mean_model = 0.5, .rank_worst = 0.25, .rank_mean = 0.3});
  const std::vector<std::string> lines = lines_of(comparison_table({{"text", text}}));
  CHECK(lines[0].starts_with("run   bits per character"));
  std::istringstream cells(lines[2]);
  std::string name, averaged, worst;
  cells >> name >> averaged >> worst;
  CHECK(averaged == "2.718");
  CHECK(worst == "3.25");
  CHECK(text.accuracy_mean_model == 0.5);  // known, though it is not what the task is judged by
  const std::string outcome = outcome_text(text, "runs/text", false);
  CHECK(outcome.find("bits per character of the averaged model") != std::string::npos);
  CHECK(outcome.find("accuracy of the averaged model") != std::string::npos);
  const auto notes = comparison_notes({{"images", finished(5, 5)}, {"text", text}});
  REQUIRE(!notes.empty());
  CHECK(notes.front().find("judged by bits per character (baseline: accuracy)") != std::string::npos);
}

TEST_CASE("nothing can be a percentage of a run that sent nothing") {
  const std::vector<ComparedRun> runs{{"silent", finished(0, 0)}, {"b", finished(5, 5)}};
  const auto lines = lines_of(comparison_table(runs));
  CHECK(lines[3].find("–") != std::string::npos);
  CHECK(lines[3].find("inf") == std::string::npos);
  CHECK(mentions(comparison_notes(runs), "silent counted no messages"));
}

TEST_CASE("the progress line") {
  Progress p{};
  p.iteration = 1200;
  p.iterations = 9380;
  p.epoch = 1.28;
  p.epochs = 10;
  p.loss = 0.1431;
  p.messages_fraction = 0.312;
  p.megabytes_sent = 4.12;
  p.iterations_per_second = 812.3;
  p.seconds_left = 10.07;
  CHECK(progress_line(p) ==
        "iter 1200/9380 · epoch 2/10 · loss 0.143 · sent 31.2 % · 4.12 MB · 812 it/s · left 10.1 s");
}

TEST_CASE("progress: `off` writes nothing, `lines` writes the last iteration and evaluations, `bar` cleans up") {
  const auto shown = [](ProgressMode mode) {
    std::FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    {
      ProgressDisplay display(mode, file);
      Progress p{};
      p.iterations = 5;
      for (p.iteration = 1; p.iteration <= p.iterations; ++p.iteration) display.update(p);
      display.evaluated({.iteration = 5,
                         .epoch = 1,
                         .time_s = 1,
                         .loss_mean_model = 1,
                         .consensus_distance = 0,
                         .metrics = {{accuracy_metric(), 0.5}}});
    }
    std::rewind(file);
    std::string text;
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
    std::fclose(file);
    return text;
  };
  CHECK(shown(ProgressMode::off).empty());
  const std::string text = shown(ProgressMode::lines);
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("iter 5/5"));
  CHECK(lines[1].starts_with("evaluation at iter 5"));
  CHECK(text.find('\r') == std::string::npos);
  const std::string bar = shown(ProgressMode::bar);
  const auto blank = bar.rfind(" \revaluation");  // the bar is wiped before a line takes its place
  CHECK(blank != std::string::npos);
  CHECK(shown(ProgressMode::automatic) == text);  // a file is no terminal
}

TEST_CASE("the outcome of a run alone says nothing about messages; that of several ranks does") {
  Summary alone = finished(0, 0);
  alone.ranks = 1;
  CHECK(outcome_text(alone, "runs/x", false).find("messages") == std::string::npos);
  const std::string text = outcome_text(finished(16000, 1000), "runs/x", true);
  CHECK(text.find("16,000 (25.0 % of D-PSGD's)") != std::string::npos);
  CHECK(text.find("runs/x") != std::string::npos);
  CHECK(text.find("averaged model") < text.find("runs/x/model.pt"));
  CHECK(outcome_text(alone, "runs/x", false).find("model.pt") == std::string::npos);
}

TEST_CASE("the outcome says how old mixed copies were, and warns from a tenth of the run on") {
  Summary run = finished(16000, 1000);
  run.iterations = 100;
  CHECK(outcome_text(run, "runs/x", false).find("age of mixed copies") == std::string::npos);
  run.staleness_mean = 1.5;
  for (const double largest : {0.0, 10.0, 11.0, 60.0}) {
    run.staleness_max = largest;
    const std::string text = outcome_text(run, "runs/x", false);
    CHECK(text.find("mean 1.5, at most " + significant(largest, 6)) != std::string::npos);
    CHECK((text.find("warning: ") != std::string::npos) == (largest > 10.0));
  }
}

TEST_CASE("long work says how long it takes, before it begins where that is known, and afterwards by what is done") {
  CHECK(beginning_of_work(24, "step", 2.0) == "24 steps, at most about 48.0 s");
  CHECK(beginning_of_work(1, "step", {}).starts_with("1 step; how long"));
  CHECK(progress_of_work(3, 12, "step", 30.0, "ring") == "step 3/12 done after 30.0 s, about 90.0 s left · ring");
  CHECK(progress_of_work(0, 12, "step", 3.0, "") == "step 0/12 done after 3.00 s");
}

}  // namespace text_test
