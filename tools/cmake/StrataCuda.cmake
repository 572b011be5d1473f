# The CUDA platform: the choice to build it, and its requirements.
#
# STRATA_CUDA=AUTO builds it if the toolkit is found, ON requires the toolkit, OFF
# omits the platform. STRATA_PLATFORM_CUDA is the result; strata_platforms() reads it.

set(STRATA_CUDA AUTO CACHE STRING "Build the CUDA platform: AUTO, ON or OFF")
set_property(CACHE STRATA_CUDA PROPERTY STRINGS AUTO ON OFF)
set(STRATA_CUDA_MINIMUM 12.4)

set(STRATA_PLATFORM_CUDA OFF)
if(STRATA_CUDA)
  find_package(CUDAToolkit ${STRATA_CUDA_MINIMUM} QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cudart_static)
    set(STRATA_PLATFORM_CUDA ON)
  elseif(NOT STRATA_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "STRATA_CUDA=${STRATA_CUDA} needs the CUDA toolkit ${STRATA_CUDA_MINIMUM} or newer, with nvcc "
                        "and the static runtime; set CUDAToolkit_ROOT to its folder, or STRATA_CUDA to OFF")
  endif()
endif()

# strata_cuda_platform(<target>): configures the target that compiles
# platform/cuda. The kernel is compiled to PTX for the oldest GPUs that CUDA 13
# supports, and for GPUs that launch dependent work early. The driver compiles one
# of them for the GPU of the machine. Each is embedded as a source file.
function(strata_cuda_platform target)
  set(kernel ${PROJECT_SOURCE_DIR}/platform/cuda/cuda_work_kernel.cu)
  set(embed ${PROJECT_SOURCE_DIR}/tools/cmake/StrataEmbedText.cmake)
  foreach(compute IN ITEMS 75 90)
    string(REPLACE 75 "" suffix ${compute})
    set(ptx ${PROJECT_BINARY_DIR}/generated/cuda_work_kernel${suffix}.ptx)
    set(source ${PROJECT_BINARY_DIR}/generated/cuda_work_ptx${suffix}.cc)
    add_custom_command(
      OUTPUT ${source}
      COMMAND
        ${CUDAToolkit_NVCC_EXECUTABLE} -ptx -arch=compute_${compute} -std=c++17 -Werror
        all-warnings -I ${STRATA_INCLUDE_ROOT}/base -I ${STRATA_INCLUDE_ROOT}/platform -o ${ptx} ${kernel}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${ptx} -DOUTPUT=${source}
              -DNAMESPACE=strata::cuda -DNAME=kCudaWorkPtx${suffix} -P ${embed}
      DEPENDS ${kernel} ${PROJECT_SOURCE_DIR}/platform/cuda/cuda_work_arguments.h ${embed}
      VERBATIM)
    # clang-tidy reads the sources without building this target.
    set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(${target} PRIVATE ${source})
  endforeach()
  # Headers only: the driver is found at run time.
  target_include_directories(${target} SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
endfunction()

# strata_cuda_sources(<target> <include folder> <source>...): adds the objects of
# CUDA sources, compiled by nvcc for the same GPUs, and the runtime that they need.
function(strata_cuda_sources target include)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/${name}.cu.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND
        ${CUDAToolkit_NVCC_EXECUTABLE} -c -O2 -std=c++17 -Werror all-warnings
        -gencode arch=compute_75,code=compute_75 -I ${include} -MD
        -MF ${object}.d -o ${object} ${source}
      DEPENDS ${source}
      DEPFILE ${object}.d
      VERBATIM)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
endfunction()
