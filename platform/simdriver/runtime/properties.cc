// The properties of a device in one structure.

#include <cstring>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

template <class Field>
CUresult Put(Field* field, CUdevice_attribute attribute, int device) {
  int value = 0;
  const CUresult result = cuDeviceGetAttribute(&value, attribute, device);
  if (result == CUDA_SUCCESS) *field = static_cast<Field>(value);
  return result;
}

CUresult PutIdentity(cudaDeviceProp* properties, int device) {
  CUresult result =
      cuDeviceGetName(properties->name, sizeof(properties->name), device);
  if (result != CUDA_SUCCESS) return result;
  result = cuDeviceTotalMem(&properties->totalGlobalMem, device);
  if (result != CUDA_SUCCESS) return result;
  return cuDeviceGetUuid(&properties->uuid, device);
}

}  // namespace

cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int device) {
  return WithDriver([&] {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cudaDeviceProp found;
    std::memset(&found, 0, sizeof(found));
    CUresult result = PutIdentity(&found, device);
#define STRATA_SIM_PROPERTY(field, attribute)                            \
  if (result == CUDA_SUCCESS) {                                          \
    result = Put(&found.field, CU_DEVICE_ATTRIBUTE_##attribute, device); \
  }
#include "strata/platform/simdriver/runtime/properties.def"
#undef STRATA_SIM_PROPERTY
    if (result == CUDA_SUCCESS) *properties = found;
    return result;
  });
}

}  // namespace strata::simdriver::runtime
