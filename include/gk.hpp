/** @file gk.hpp
 * gk.h for C++11 and newer: devices and graphs that close themselves, and errors as exceptions. It adds nothing else:
 * lists, slots and statuses are those of gk.h, and get() gives what its functions take. docs/guide.md has a program.
 * \since 0.2.0 */
#ifndef GK_HPP
#define GK_HPP

#if !defined(__cplusplus) || !defined(__cpp_exceptions)
#error "gk.hpp reports errors as exceptions; C, and C++ with -fno-exceptions, use gk.h"
#endif

#include "gk.h"
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
/** gk.h with destructors and exceptions. */
namespace gk {

/** A call failed: its result, and the message as what(). */
class error : public std::runtime_error {
public:
  /** A failure that this thread's last call returned, unless there is a message. */
  explicit error(gk_result result, const char *message = gk_error()) : std::runtime_error(message), result_(result) {}
  gk_result result() const noexcept { return result_; } /**< What the call returned. */

private:
  gk_result result_;
};

/** Throws gk::error unless a call of gk.h returned GK_OK. */
inline void require(gk_result result) {
  if (result != GK_OK) throw error(result);
}

/** A gk_device, which can be moved and is closed at the end. It may end before its graphs. */
class device {
public:
  /** Opens a device, as gk_device_open does; without a description, the best one. */
  explicit device(const gk_device_desc &desc = gk_device_desc()) {
    gk_device *opened = nullptr;
    require(gk_device_open(&desc, &opened));
    device_.reset(opened);
  }
  explicit device(const char *backend) : device(named(backend)) {}   /**< Opens the best device of a backend. */
  explicit device(gk_device *opened) noexcept : device_(opened) {}   /**< Takes over an open device. */
  gk_device *get() const noexcept { return device_.get(); }          /**< For the calls of gk.h; NULL: moved away. */

private:
  /** @cond */
  struct closer { void operator()(gk_device *device) const noexcept { gk_device_close(device); } };
  /** @endcond */
  static gk_device_desc named(const char *backend) {
    gk_device_desc desc = gk_device_desc();
    desc.backend = backend;
    return desc;
  }
  std::unique_ptr<gk_device, closer> device_;
};

/** A gk_graph, which can be moved and is destroyed at the end. Each function does what that of gk.h does and throws
 * gk::error where that one fails. If bind or resize threw, the next launch throws, too, unless the slot is bound. */
class graph {
public:
  /** gk_graph_create */
  graph(const device &on, const gk_list &list, uint32_t bits = 0) {
    gk_graph *made = nullptr;
    require(gk_graph_create(on.get(), &list, bits, &made));
    graph_.reset(made);
  }
  explicit graph(gk_graph *made) noexcept : graph_(made) {}  /**< Takes over a graph. */
  gk_graph *get() const noexcept { return graph_.get(); }    /**< For the calls of gk.h; NULL: moved away. */

  /** Binds memory. */
  void bind(gk_slot slot, const void *memory) { require(gk_bind(get(), slot, memory)); }
  /** Binds an integer or an enumerator to a slot of type I32, U32 or I64. */
  template <class T, typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value, int>::type = 0>
  void bind(gk_slot slot, T value) {
    if (value > T(0) && static_cast<uint64_t>(value) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw error(GK_ERROR_INVALID, "gk::graph::bind: the number is larger than an int64_t");
    require(gk_bind_int(get(), slot, static_cast<int64_t>(value)));
  }
  /** Binds a number to a slot of type F32 or F64. */
  void bind(gk_slot slot, double value) { require(gk_bind_float(get(), slot, value)); }
  void bind(gk_slot slot, float value) { bind(slot, static_cast<double>(value)); } /**< The same. */
  /** gk_bind_bytes */
  template <class T> void bind_bytes(gk_slot slot, const T &value) {
    static_assert(std::is_trivially_copyable<T>::value, "a slot gets a copy of the bytes");
    require(gk_bind_bytes(get(), slot, &value, sizeof value));
  }
  void resize(gk_slot slot, size_t count) { require(gk_resize(get(), slot, count)); }  /**< gk_resize */
  void *bound(gk_slot slot) const noexcept { return gk_bound(get(), slot); }           /**< gk_bound */
  void read(gk_slot slot, void *to, size_t count) { require(gk_read(get(), slot, to, count)); } /**< gk_read */
  /** gk_write */
  void write(gk_slot slot, const void *from, size_t count) { require(gk_write(get(), slot, from, count)); }

  void launch(int32_t label = 0) { require(gk_launch(get(), label)); } /**< gk_launch */
  /** gk_launch_on */
  void launch_on(int32_t label, void *native_stream) { require(gk_launch_on(get(), label, native_stream)); }
  /** gk_wait; the status is valid until the next launch. */
  const gk_status &wait() {
    const gk_status *status = nullptr;
    require(gk_wait(get(), &status));
    return *status;
  }
  /** gk_poll; NULL while the launch runs. */
  const gk_status *poll() {
    const gk_status *status = nullptr;
    const gk_result result = gk_poll(get(), &status);
    if (result != GK_NOT_READY) require(result);
    return result == GK_OK ? status : nullptr;
  }
  /** gk_launch_wait */
  const gk_status &launch_wait(int32_t label = 0) {
    const gk_status *status = nullptr;
    require(gk_launch_wait(get(), label, &status));
    return *status;
  }
  /** gk_run; a yield is an error. */
  const gk_status &run() {
    const gk_status *totals = nullptr;
    require(gk_run(get(), nullptr, nullptr, &totals));
    return *totals;
  }
  /** gk_run; calls on_yield(graph &, const gk_status &) at each yield, then resumes. An exception of on_yield ends the
   * run and leaves this function. */
  template <class F> const gk_status &run(F &&on_yield) {
    typedef typename std::remove_reference<F>::type function;
    static_assert(std::is_void<decltype(on_yield(*this, std::declval<const gk_status &>()))>::value,
                  "on_yield returns nothing; to end the run, it throws");
    yields<function> with = {this, &on_yield, nullptr};
    const gk_status *totals = nullptr;
    const gk_result result = gk_run(get(), &yields<function>::call, &with, &totals);
    if (with.thrown) std::rethrow_exception(with.thrown);
    require(result);
    return *totals;
  }
  void cancel() { require(gk_cancel(get())); } /**< gk_cancel; any thread may call it. */

private:
  /** @cond */
  struct destroyer { void operator()(gk_graph *graph) const noexcept { gk_graph_destroy(graph); } };
  /* Exceptions don't pass through gk's own frames. */
  template <class F> struct yields {
    graph *self;
    F *on_yield;
    std::exception_ptr thrown;
    static gk_result call(void *user, gk_graph *, const gk_status *status) {
      yields *with = static_cast<yields *>(user);
      try {
        (*with->on_yield)(*with->self, *status);
        return GK_OK;
      } catch (...) {
        with->thrown = std::current_exception();
        return GK_ERROR_INVALID;
      }
    }
  };
  /** @endcond */
  std::unique_ptr<gk_graph, destroyer> graph_;
};

} // namespace gk
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
