#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/io/entries.hpp"
#include "parsimon/io/replace_file.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A model file in memory (see Entries), with vectors and matrices as Eigen has them. A file that
// cannot be opened or written is a std::filesystem::filesystem_error.
class Archive : public Entries {
 public:
  Archive() = default;
  explicit Archive(Entries entries) : Entries(std::move(entries)) {}

  using Entries::set;

  // A vector type is stored as a vector, anything else as a matrix.
  template <class Derived>
  void set(const std::string& name, const Eigen::MatrixBase<Derived>& values) {
    using Number = typename Derived::Scalar;
    const Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows = values;
    std::vector<Index> shape{rows.rows(), rows.cols()};
    if (Derived::IsVectorAtCompileTime) shape = {rows.size()};
    put(name,
        {type_of<Number>(), shape, encode(rows.data(), static_cast<std::size_t>(rows.size()))});
  }

  Vector get_vector(const std::string& name, Index size = any_size) const {
    const Entry& entry = find_vector(name, Type::numbers, size);
    Vector values(entry.shape[0]);
    decode(entry, values.data());
    return values;
  }

  RowMatrix get_matrix(const std::string& name, Index rows = any_size,
                       Index columns = any_size) const {
    const Entry& entry = find_matrix(name, rows, columns);
    RowMatrix values(entry.shape[0], entry.shape[1]);
    decode(entry, values.data());
    return values;
  }

  static Archive from_bytes(const std::string& bytes, const std::string& source = "The model") {
    return Archive(Entries::from_bytes(bytes, source));
  }

  static Archive read(const std::filesystem::path& path) { return Archive(Entries::read(path)); }

  void write(const std::filesystem::path& path) const { detail::replace_file(path, to_bytes()); }
};

}  // namespace parsimon
