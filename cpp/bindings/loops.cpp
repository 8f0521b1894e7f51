#include <parsimon/linalg/loops.hpp>
#include <parsimon/linalg/native_loops.hpp>

// The loops that every processor runs, compiled once for all sources of the extension. A module
// _simd_<level> may take their place.
namespace parsimon::linalg {

const Loops* loops_in_use = &kNativeLoops;

}
