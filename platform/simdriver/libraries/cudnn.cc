// The functions of cuDNN with results that depend on their arguments: the
// version, and attributes of the graph interface.
//
// Model: every heuristic finds one engine, without notes and knobs. Its
//   workspace is $STRATA_SIM_CUDNN_WORKSPACE bytes, 0 by default.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// cudnnStatus_t.
constexpr int kSuccess = 0;
constexpr int kBadParameter = 2000;

// The version, which must not be older than the one that a program was built
// for.
constexpr int kVersion[] = {9, 26, 0};

// cudnnBackendAttributeType_t.
constexpr int kBoolean = 2;
constexpr int kInt64 = 3;
constexpr int kDescriptor = 15;
constexpr int kInt32 = 23;
constexpr int kChar = 24;

// cudnnBackendAttributeName_t.
constexpr int kHeuristicResults = 202;
constexpr int kConfigEngine = 300;
constexpr int kConfigWorkspace = 303;
constexpr int kPlanConfig = 401;
constexpr int kPlanWorkspace = 402;

std::int64_t Workspace() {
  const char* text = std::getenv("STRATA_SIM_CUDNN_WORKSPACE");
  return text == nullptr ? 0 : std::atoll(text);
}

// Number of values of `attribute`, which have the type `type`.
std::int64_t CountOf(int attribute, int type) {
  switch (type) {
    case kDescriptor:
      // The caller made the descriptors that an answer would fill.
      return attribute == kHeuristicResults || attribute == kConfigEngine ||
                     attribute == kPlanConfig
                 ? 1
                 : 0;
    case kBoolean:
    case kInt64:
    case kInt32:
      return 1;
    case kChar:
      return 3;
    default:
      return 0;
  }
}

void PutValue(int attribute, int type, void* out) {
  const bool is_workspace =
      attribute == kConfigWorkspace || attribute == kPlanWorkspace;
  const std::int64_t value = is_workspace ? Workspace() : 0;
  if (type == kInt64) std::memcpy(out, &value, sizeof(value));
  if (type == kInt32) std::memset(out, 0, sizeof(std::int32_t));
  if (type == kBoolean) std::memset(out, 0, 1);
  if (type == kChar) std::memcpy(out, "{}", 3);
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() {
  return static_cast<std::size_t>(kVersion[0] * 10000 + kVersion[1] * 100 +
                                  kVersion[2]);
}

// `part`: a libraryPropertyType of library_types.h.
int cudnnGetProperty(int part, int* value) {
  if (part < 0 || part > 2 || value == nullptr) return kBadParameter;
  *value = kVersion[part];
  return kSuccess;
}

int cudnnBackendGetAttribute(void* /*descriptor*/, int attribute, int type,
                             std::int64_t requested, std::int64_t* count,
                             void* values) {
  const std::int64_t available = CountOf(attribute, type);
  if (count != nullptr) *count = available;
  if (values != nullptr && available > 0 && requested >= available) {
    PutValue(attribute, type, values);
  }
  return kSuccess;
}

}  // extern "C"
