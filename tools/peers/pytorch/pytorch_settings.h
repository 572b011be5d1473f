#ifndef STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_SETTINGS_H_
#define STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_SETTINGS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strata::peers {

// The switches of PYTORCH_CUDA_ALLOC_CONF that PytorchPeer implements. The
// defaults are PyTorch's.
//
// Source: pytorch.md §1.3, §2.1 to §2.5.
struct PytorchSettings {
  static constexpr std::size_t kUnlimited = SIZE_MAX;
  static constexpr std::size_t kIntervals = 16;  // of 1 MiB, 2 MiB, …, 32 GiB

  // Use segments of virtual memory.
  bool expandable_segments = false;
  // max_split_size_mb: free blocks of this size and larger are never split, and
  // serve only requests from this size on.
  std::size_t max_split_bytes = kUnlimited;
  // Number of steps between two powers of two to which sizes are rounded, by
  // the power of two below the size. 0 and 1: multiples of 512 bytes.
  std::array<std::size_t, kIntervals> power2_divisions{};
  // Share of the cap above which idle segments are released before a new one is
  // created; 0: off. No effect without a cap.
  double garbage_collection_threshold = 0;
  // The cap on reserved bytes, as a share of the device; 1: none.
  double memory_fraction = 1;

  bool HasCap() const { return memory_fraction < 1; }
  bool CollectsGarbage() const {
    return HasCap() && garbage_collection_threshold > 0;
  }
  // The size of the block for a request of `bytes`, which is not 0.
  std::size_t RoundedBytes(std::size_t bytes) const;
};

// Applies the switches of `text`, "KEY=VALUE,KEY=VALUE", to `settings`: the
// names and values of PYTORCH_CUDA_ALLOC_CONF. A list of
// roundup_power2_divisions is in brackets.
//
// Errors: std::invalid_argument naming the key that is unknown or repeated, or
//   the key with a wrong value.
PytorchSettings WithPytorchSwitches(PytorchSettings settings,
                                    std::string_view text);

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_SETTINGS_H_
