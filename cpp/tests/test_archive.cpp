#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <parsimon/io/archive.hpp>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace parsimon;
namespace fs = std::filesystem;

namespace {

Archive sample() {
  Archive archive;
  archive.set("kind", "POLKClassifier");
  archive.set("text", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80");
  archive.set("count", -42);
  archive.set("flag", true);
  archive.set("step", 0.1);
  archive.set("ids", std::vector<std::int64_t>{1, -2, std::numeric_limits<std::int64_t>::min()});
  archive.set("norms", Vector(Vector::LinSpaced(4, -1.0, 1.0)));
  archive.set("weights", RowMatrix(Vector::LinSpaced(6, 0.1, 0.7).reshaped(3, 2)));
  archive.set("empty", RowMatrix(0, 7));
  return archive;
}

// The bytes with a checksum that fits them.
std::string sign(std::string bytes) {
  std::string field;
  detail::append_little_endian(field, detail::archive_checksum(bytes));
  return bytes.replace(detail::archive_checksum_offset, 8, field);
}

std::string with_length_and_checksum(std::string bytes) {
  std::string field;
  detail::append_little_endian(field, static_cast<std::uint64_t>(bytes.size()));
  return sign(bytes.replace(16, 8, field));
}

std::string header(std::uint32_t entries) {
  std::string bytes = detail::archive_magic();
  detail::append_little_endian(bytes, Archive::format_version);
  detail::append_little_endian(bytes, entries);
  return bytes.append(16, '\0');
}

std::string entry(const std::string& name, std::uint8_t type,
                  const std::vector<std::uint64_t>& shape, const std::string& payload) {
  std::string bytes;
  detail::append_little_endian(bytes, static_cast<std::uint32_t>(name.size()));
  bytes += name;
  detail::append_little_endian(bytes, type);
  detail::append_little_endian(bytes, static_cast<std::uint8_t>(shape.size()));
  for (const std::uint64_t size : shape) detail::append_little_endian(bytes, size);
  return bytes + payload;
}

std::string message_of(const std::string& bytes) {
  try {
    Archive::from_bytes(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Either an Error or an archive that is itself again after a round trip.
void check_survives(const std::string& bytes) {
  try {
    const std::string again = Archive::from_bytes(bytes).to_bytes();
    CHECK(Archive::from_bytes(again).to_bytes() == again);
  } catch (const Error&) {
  }
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::random_device entropy;
    path_ = fs::temp_directory_path() / ("parsimon-test-" + std::to_string(entropy()));
    fs::create_directory(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  long files() const {
    return static_cast<long>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

void write_raw(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST(everything_comes_back_as_it_was) {
  const Archive original = sample();
  const Archive archive = Archive::from_bytes(original.to_bytes());
  CHECK(archive.get_text("kind") == "POLKClassifier");
  CHECK(archive.get_text("text") == original.get_text("text"));
  CHECK(archive.get_integer("count") == -42);
  CHECK(archive.get_integer("flag") == 1);
  CHECK(archive.get_number("step") == 0.1);
  CHECK(archive.get_integers("ids", 3)[2] == std::numeric_limits<std::int64_t>::min());
  CHECK(archive.get_vector("norms", 4) == original.get_vector("norms"));
  CHECK(archive.get_matrix("weights", 3, 2) == original.get_matrix("weights"));
  CHECK(archive.get_numbers("norms", 4) == original.get_numbers("norms"));
  CHECK(archive.get_table("weights", 3, 2).numbers[1] == archive.get_matrix("weights")(0, 1));
  CHECK(archive.get_matrix("empty").rows() == 0 && archive.get_matrix("empty").cols() == 7);
  CHECK(!archive.has("nothing"));
}

TEST(numbers_keep_their_bits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Archive archive;
  archive.set("x",
              std::vector<double>{-0.0, nan, -std::numeric_limits<double>::infinity(), 5e-324});
  const Vector x = Archive::from_bytes(archive.to_bytes()).get_vector("x");
  CHECK(x(0) == 0.0 && std::signbit(x(0)) && std::isnan(x(1)) && std::isinf(x(2)) &&
        x(3) == 5e-324);
}

TEST(matrices_are_stored_row_by_row_whatever_they_are) {
  const Eigen::MatrixXd columns = Eigen::MatrixXd::Random(3, 4);
  Archive archive;
  archive.set("m", columns);
  archive.set("block", columns.block(1, 1, 2, 2));
  archive.set("row", columns.row(1));
  CHECK(archive.get_matrix("m") == columns);
  CHECK(archive.get_matrix("block") == columns.block(1, 1, 2, 2));
  CHECK(archive.get_vector("row").transpose() == columns.row(1));
}

TEST(equal_content_gives_equal_bytes) {
  Archive forwards, backwards;
  forwards.set("a", 1.0);
  forwards.set("b", "text");
  backwards.set("b", "other");
  backwards.set("b", "text");
  backwards.set("a", 1.0);
  CHECK(forwards.to_bytes() == backwards.to_bytes());
  CHECK(Archive().to_bytes().size() == 32);
}

// The format is a promise: these bytes must stay readable.
TEST(format_1_is_laid_out_as_documented) {
  const std::string golden =
      with_length_and_checksum(header(2) + entry("a", 3, {}, std::string("\x05\0\0\0\0\0\0\0", 8)) +
                               entry("t", 1, {2}, "ok"));
  Archive archive;
  archive.set("a", 5);
  archive.set("t", "ok");
  CHECK(archive.to_bytes() == golden);
  CHECK(golden.substr(0, 16) == std::string("\x89PRSM\r\n\x1a\x01\0\0\0\x02\0\0\0", 16));
  CHECK(detail::fnv1a("foobar", 6) == 0x85944171f73967e8ULL);
}

TEST(wrong_requests_name_the_entry_and_what_was_expected) {
  const Archive archive = sample();
  CHECK_THROWS(archive.get_text("nothing"), Error);
  CHECK_THROWS(archive.get_text("step"), Error);
  CHECK_THROWS(archive.get_number("count"), Error);
  CHECK_THROWS(archive.get_integer("ids"), Error);
  CHECK_THROWS(archive.get_vector("weights"), Error);
  CHECK_THROWS(archive.get_vector("norms", 5), Error);
  CHECK_THROWS(archive.get_matrix("weights", 3, 4), Error);
  CHECK_THROWS(archive.get_integers("ids", 2), Error);
  try {
    archive.get_matrix("weights", Archive::any_size, 4);
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(contains(text, "weights") && contains(text, "3 x 2") && contains(text, "any x 4"));
  }
}

TEST(unusable_entries_are_refused_when_set) {
  Archive archive;
  CHECK_THROWS(archive.set("", 1), Error);
  CHECK_THROWS(archive.set(std::string(256, 'x'), 1), Error);
  CHECK_THROWS(archive.set("x", "\xff"), Error);
  CHECK_THROWS(archive.set("\xc0\x80", 1), Error);
  CHECK_THROWS(archive.set("x", std::numeric_limits<std::uint64_t>::max()), Error);
  CHECK(archive.entries().empty());
}

TEST(utf8_is_checked_as_the_standard_says) {
  for (const char* good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(detail::is_utf8(good));
  }
  for (const char* bad : {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc2\x41"}) {
    CHECK(!detail::is_utf8(bad));
  }
}

TEST(each_kind_of_damage_has_its_own_sentence) {
  const std::string good = sample().to_bytes();
  CHECK(contains(message_of(""), "empty"));
  CHECK(contains(message_of("PK\x03\x04 something else"), "not a parsimon model"));
  CHECK(contains(message_of(good.substr(0, 20)), "within its header"));
  CHECK(contains(message_of(good.substr(0, good.size() - 1)), "incomplete"));
  CHECK(contains(message_of(good + "x"), "appended"));
  std::string future = good, damaged = good;
  future[8] = 3;
  damaged[good.size() / 2] ^= 1;
  CHECK(contains(message_of(future), "newer parsimon (format 3; this one reads up to 1)"));
  CHECK(contains(message_of(damaged), "checksum"));
}

TEST(impossible_entries_are_refused) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  const std::string number(8, '\0');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {entry("a", 9, {}, number), "unknown type"},
      {entry("a", 0, {}, number), "unknown type"},
      {entry("a", 2, {1}, "x"), "unknown type"},
      {entry("a", 4, {1, 1, 1}, number), "rank"},
      {entry("a", 1, {}, "x"), "rank"},
      {entry("a", 4, {huge}, number), "large"},
      {entry("a", 4, {1ULL << 32, 1ULL << 32}, number), "large"},
      {entry("a", 4, {1ULL << 61}, number), "large"},
      {entry("a", 4, {0, huge}, ""), "large"},
      {entry("a", 4, {1ULL << 40}, number), "beyond the end"},
      {entry("a", 4, {2}, number), "beyond the end"},
      {entry("a", 1, {1}, "\xff"), "UTF-8"},
      {entry("\xff", 4, {}, number), "UTF-8"},
      {entry("", 4, {}, number), "name"},
      {entry("a", 4, {}, number + "x"), "follow"},
  };
  for (const auto& [bytes, expected] : cases) {
    CHECK(contains(message_of(with_length_and_checksum(header(1) + bytes)), expected));
  }
  const std::string twice = entry("a", 4, {}, number) + entry("a", 4, {}, number);
  CHECK(contains(message_of(with_length_and_checksum(header(2) + twice)), "twice"));
  CHECK(contains(message_of(with_length_and_checksum(header(0xFFFFFFFF))), "beyond the end"));
}

TEST(no_truncation_is_accepted) {
  const std::string good = sample().to_bytes();
  for (std::size_t length = 0; length < good.size(); ++length) {
    const std::string part = good.substr(0, length);
    CHECK_THROWS(Archive::from_bytes(part), Error);
    if (length >= detail::archive_header_size) {
      CHECK_THROWS(Archive::from_bytes(with_length_and_checksum(part)), Error);
    }
  }
}

TEST(no_flipped_byte_is_accepted_and_none_crashes) {
  std::mt19937 random(11);
  const std::string good = sample().to_bytes();
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = good;
    const std::size_t flips = 1 + random() % 3;
    for (std::size_t i = 0; i < flips; ++i) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    }
    if (bytes != good) CHECK_THROWS(Archive::from_bytes(bytes), Error);
    check_survives(sign(bytes));
  }
}

TEST(random_bytes_never_crash) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % (trial % 2 ? 256 : 6));
    CHECK_THROWS(Archive::from_bytes(bytes), Error);
    check_survives(
        with_length_and_checksum(header(1 + static_cast<unsigned>(random() % 3)) + bytes));
  }
}

TEST(files_are_replaced_as_a_whole) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "model.parsimon";
  sample().write(path);
  CHECK(Archive::read(path).to_bytes() == sample().to_bytes());
  Archive other;
  other.set("x", 1);
  other.write(path);
  CHECK(Archive::read(path).to_bytes() == other.to_bytes());
  CHECK(directory.files() == 1);
}

TEST(a_failed_write_leaves_no_trace) {
  const TemporaryDirectory directory;
  const fs::path taken = directory.path() / "taken";
  fs::create_directory(taken);
  CHECK_THROWS(sample().write(taken), fs::filesystem_error);
  CHECK_THROWS(sample().write(directory.path() / "missing" / "model"), fs::filesystem_error);
  CHECK(directory.files() == 1);
}

TEST(bad_files_are_refused) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "model";
  CHECK_THROWS(Archive::read(path), fs::filesystem_error);
  CHECK_THROWS(Archive::read(directory.path()), fs::filesystem_error);
  const std::string good = sample().to_bytes();
  for (std::size_t length = 0; length < good.size(); length += 7) {
    write_raw(path, good.substr(0, length));
    CHECK_THROWS(Archive::read(path), Error);
  }
  std::string claims_too_much = good;
  claims_too_much[22] = 0x7f;
  write_raw(path, sign(claims_too_much));
  CHECK_THROWS(Archive::read(path), Error);
  write_raw(path, good);
  CHECK(Archive::read(path).to_bytes() == good);
}
