// Scratch memory of a worker: uninitialised, aligned to a cache line, growing on demand.
#pragma once

#include <new>

#include "base/platform.hpp"

namespace multimargin::inline base {

template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { release(); }

  // Room for `size` values. Old contents are lost if the buffer has to grow.
  T* reserve(Index size) {
    if (size > size_) {
      release();
      data_ = static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t{64}));
      size_ = size;
    }
    return data_;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  void release() {
    if (data_) ::operator delete(data_, std::align_val_t{64});
    data_ = nullptr;
    size_ = 0;
  }

  T* data_ = nullptr;
  Index size_ = 0;
};

}  // namespace multimargin::base
