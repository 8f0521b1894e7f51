#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

// A test file includes this once, writes TEST(name) { ... } blocks and is a program: it runs them
// all, prints each failed check and returns 1 if there was one. An argument runs only the tests
// whose names contain it.
namespace check {

using Test = std::pair<const char*, void (*)()>;

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

inline bool add(const char* name, void (*test)()) {
  tests().emplace_back(name, test);
  return true;
}

inline void fail(const char* file, int line, const std::string& what) {
  ++failures();
  std::printf("%s:%d: %s\n", file, line, what.c_str());
}

inline void near(const char* file, int line, const char* what, double a, double b, double tol) {
  if (a == b || std::abs(a - b) <= tol) return;
  char text[200];
  std::snprintf(text, sizeof text, ": %.17g and %.17g differ by %g > %g", a, b, std::abs(a - b),
                tol);
  fail(file, line, what + std::string(text));
}

inline int run(const std::string& filter) {
  for (const Test& test : tests()) {
    if (std::string(test.first).find(filter) == std::string::npos) continue;
    const int before = failures();
    try {
      test.second();
    } catch (const std::exception& error) {
      fail(test.first, 0, std::string("threw ") + error.what());
    }
    std::printf("%s %s\n", failures() == before ? "ok    " : "FAILED", test.first);
  }
  return failures() == 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                  \
  static void test_##name();                                        \
  static const bool added_##name = check::add(#name, &test_##name); \
  static void test_##name()

#define CHECK(...) \
  ((__VA_ARGS__) ? void() : check::fail(__FILE__, __LINE__, "not true: " #__VA_ARGS__))

#define CHECK_NEAR(a, b, tol) check::near(__FILE__, __LINE__, #a ", " #b, (a), (b), (tol))

#define CHECK_THROWS(expression, Type)                                          \
  do {                                                                          \
    bool thrown = false;                                                        \
    try {                                                                       \
      static_cast<void>(expression);                                            \
    } catch (const Type&) {                                                     \
      thrown = true;                                                            \
    }                                                                           \
    if (!thrown) check::fail(__FILE__, __LINE__, "no " #Type ": " #expression); \
  } while (false)

int main(int argc, char** argv) { return check::run(argc > 1 ? argv[1] : ""); }
