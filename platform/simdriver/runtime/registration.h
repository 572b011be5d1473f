#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_REGISTRATION_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_REGISTRATION_H_

// The functions that the compiler's host code calls, which cuda_runtime_api.h
// does not declare.
//
// Source: crt/host_runtime.h and crt/device_runtime.h of CUDA 13.0.

#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {
void** __cudaRegisterFatBinary(void* image);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* name,
                            const char* device_name, int thread_limit,
                            uint3* thread, uint3* block, dim3* block_extents,
                            dim3* grid_extents, int* warp_size);
void __cudaRegisterVar(void** handle, char* host_variable, char* address,
                       const char* name, int is_extern, std::size_t bytes,
                       int is_constant, int is_global);
void __cudaRegisterManagedVar(void** handle, void** host_variable,
                              char* address, const char* name, int is_extern,
                              std::size_t bytes, int is_constant,
                              int is_global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                     std::size_t shared_bytes,
                                     CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                       std::size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream);
}

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_REGISTRATION_H_
