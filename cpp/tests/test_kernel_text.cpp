#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "kernel_cases.hpp"

using namespace parsimon;
using namespace kernel_cases;

namespace {

std::string message_of(const std::string& text) {
  try {
    parse_kernel(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "scale(1,";
  return text + "linear()" + std::string(static_cast<std::size_t>(depth), ')');
}

}  // namespace

TEST(a_description_reads_back_as_the_same_kernel) {
  const RowMatrix x = normal(5, 3, 1);
  RowVector each(3);
  each << 0.1, 1e-300, 123456789.123456789;
  for (const RowVector& h : {scalar(1.0 / 3.0), each}) {
    for (const Case& c : all_cases(h)) {
      const std::string text = c.kernel->describe();
      const KernelPtr again = parse_kernel(text);
      CHECK(again->describe() == text);
      CHECK(again->view_count() == c.kernel->view_count());
      CHECK(block_of(*again, x, x, x.row(0)) == block_of(*c.kernel, x, x, x.row(0)));
    }
  }
}

TEST(descriptions_are_short_and_plain) {
  const KernelPtr gaussian = std::make_shared<Gaussian>(0.5);
  CHECK(gaussian->describe() == "gaussian(0.5)");
  CHECK(Gaussian(0.1).describe() == "gaussian(0.1)");
  CHECK(Laplacian(RowVector(RowVector::Constant(1, 2.0))).describe() == "laplacian([2])");
  CHECK(Matern(2.0, 2.5).describe() == "matern(2,2.5)");
  CHECK(StudentT(3.0).describe() == "cauchy(3)");
  CHECK(StudentT(3.0, 4.0).describe() == "student_t(3,4)");
  CHECK(Polynomial(3, 0.5, 0.0).describe() == "polynomial(3,0.5,0)");
  CHECK(Sum({gaussian, std::make_shared<Scaled>(2.0, std::make_shared<Linear>())}).describe() ==
        "sum(gaussian(0.5),scale(2,linear()))");
}

TEST(parameters_are_checked) {
  const double inf = std::numeric_limits<double>::infinity();
  for (double bad : {0.0, -1.0, inf, -inf, std::nan("")}) {
    CHECK_THROWS(Gaussian(bad), Error);
    CHECK_THROWS(Laplacian(bad), Error);
    CHECK_THROWS(Matern(bad, 1.5), Error);
    CHECK_THROWS(StudentT(bad), Error);
    CHECK_THROWS(StudentT(1.0, bad), Error);
    CHECK_THROWS(Polynomial(2, bad, 1.0), Error);
    CHECK_THROWS(Scaled(bad, std::make_shared<Linear>()), Error);
    RowVector lengths(3);
    lengths << 1, bad, 1;
    CHECK_THROWS(Gaussian(lengths), Error);
  }
  CHECK_THROWS(Gaussian(RowVector()), Error);
  CHECK_THROWS(Matern(1.0, 1.0), Error);
  CHECK_THROWS(Polynomial(0, 1.0, 1.0), Error);
  CHECK_THROWS(Polynomial(2, 1.0, -1.0), Error);
  CHECK_THROWS(Polynomial(2, 1.0, inf), Error);
  CHECK_THROWS(Sum({}), Error);
  CHECK_THROWS(Product({nullptr}), Error);
  CHECK_THROWS(FunctionKernel(nullptr), Error);
}

TEST(bandwidths_for_each_feature_need_that_many_features) {
  const KernelPtr gaussian = std::make_shared<Gaussian>(RowVector(RowVector::Ones(3)));
  gaussian->check_features(3);
  CHECK_THROWS(gaussian->check_features(2), Error);
  CHECK_THROWS(Sum({std::make_shared<Linear>(), gaussian}).check_features(4), Error);
  Gaussian(1.0).check_features(17);
}

TEST(hostile_text_is_refused) {
  for (const char* text : {"",
                           "(",
                           ")",
                           "gaussian",
                           "gaussian(",
                           "gaussian()",
                           "gaussian(1",
                           "gaussian(1))",
                           "gaussian(1)x",
                           " gaussian(1)",
                           "gaussian( 1)",
                           "gaussian(1 )",
                           "gaussian(-1)",
                           "gaussian(0)",
                           "gaussian(nan)",
                           "gaussian(inf)",
                           "gaussian(1e999)",
                           "gaussian(0x10)",
                           "gaussian(1e)",
                           "gaussian(1,2)",
                           "gaussian([])",
                           "gaussian([1,])",
                           "gaussian([1,2)",
                           "gaussian([[1]])",
                           "gaussian(linear())",
                           "matern(1)",
                           "matern(1,3)",
                           "student_t(1,0)",
                           "linear(1)",
                           "linear",
                           "polynomial(3)",
                           "polynomial(2.5,1,1)",
                           "polynomial(1e300,1,1)",
                           "polynomial(-3,1,1)",
                           "polynomial(3,1,-1)",
                           "sum()",
                           "sum(1)",
                           "sum(linear(),)",
                           "scale(linear(),2)",
                           "scale(0,linear())",
                           "scale(1,linear(),linear())",
                           "unknown(1)",
                           "GAUSSIAN(1)",
                           "product(linear()",
                           "sum(linear();linear())"}) {
    CHECK_THROWS(parse_kernel(text), Error);
  }
  CHECK_THROWS(parse_kernel(std::string("linear()\0", 9)), Error);
  CHECK_THROWS(parse_kernel(std::string(1, '\0')), Error);
  CHECK(message_of("function(my_kernel)").find("give the kernel again") != std::string::npos);
  CHECK(message_of("rbf(1)").find("known are gaussian") != std::string::npos);
}

TEST(nesting_and_width_are_bounded) {
  CHECK(parse_kernel(nested(64))->describe() == nested(64));
  CHECK_THROWS(parse_kernel(nested(65)), Error);
  CHECK_THROWS(parse_kernel(nested(100000)), Error);
  CHECK_THROWS(std::make_shared<Scaled>(1.0, parse_kernel(nested(64))), Error);
  std::string wide = "sum(linear()";
  for (int i = 1; i < 1000; ++i) wide += ",linear()";
  CHECK(parse_kernel(wide + ")")->view_count() == 1000);
  CHECK_THROWS(parse_kernel(wide + ",linear())"), Error);
  CHECK_THROWS(parse_kernel(std::string(1000000, 'a') + "(1)"), Error);
  CHECK_THROWS(parse_kernel("gaussian(" + std::string(1000000, '1') + ")"), Error);
  std::string list = "gaussian([1";
  for (int i = 1; i < 5000; ++i) list += ",1.5";
  CHECK(parse_kernel(list + "])")->describe() == list + "])");
}

TEST(random_damage_never_does_harm) {
  std::mt19937_64 engine(1);
  const std::string text =
      "sum(gaussian([0.5,2]),scale(2,product(matern(1,2.5),polynomial(3,1,1))))";
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = engine() % damaged.size();
      damaged[at] = engine() % 2 ? text[engine() % text.size()] : char(engine() % 256);
    }
    damaged.resize(damaged.size() - engine() % 4);
    try {
      CHECK(!parse_kernel(damaged)->describe().empty());
    } catch (const Error&) {
    }
  }
}
