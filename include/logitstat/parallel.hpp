#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>

#if defined(LOGITSTAT_TBB)
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

/// Work on many rows, each of which writes to places of its own: in how many threads it is done cannot be seen in the
/// result. Threads come from oneTBB where LOGITSTAT_TBB is defined (the CMake target logitstat::tbb does that);
/// otherwise one row follows the other. Which of the two is a template argument of whatever uses it, so that parts of a
/// program that were compiled with and without it can be linked together.
namespace logitstat {

/// One row after the other, whatever number of threads is asked for.
struct serial {
    /// What does the work, with a state of its own.
    template <class State> class Workers {
      public:
        /// The number of threads is ignored.
        Workers(std::size_t /*threads*/, State state) : state_(std::move(state)) {}
        /// f(state, i) for each i in [begin, end). An exception ends it.
        template <class F> void for_each(std::size_t begin, std::size_t end, const F& f) {
            for (std::size_t i = begin; i < end; ++i) { f(state_, i); }
        }

      private:
        State state_;
    };
    static std::size_t available_threads() { return 1; } ///< one, whatever the machine has
};

#if defined(LOGITSTAT_TBB)
/// oneTBB's threads; each has a copy of the state. 0 threads: as many as the processor has; more than these are made,
/// too, up to 64.
struct threaded {
    static constexpr std::size_t most_threads = 64; ///< unless the processor has more

    /// Threads, each with a copy of the state from its first row on.
    template <class State> class Workers {
      public:
        /// At most 1024 threads; 0: as many as the processor has.
        Workers(std::size_t threads, const State& state)
            : count_((std::clamp<std::size_t>)(threads == 0 ? available_threads() : threads, 1,
                                               (std::max)(most_threads, available_threads()))),
              limit_(::tbb::global_control::max_allowed_parallelism, (std::max)(count_, available_threads())),
              arena_(static_cast<int>(count_)), states_(state) {}
        /// f(state, i) for each i in [begin, end), in any order. An exception ends it, maybe after further rows.
        template <class F> void for_each(std::size_t begin, std::size_t end, const F& f) {
            arena_.execute([&] {
                ::tbb::parallel_for(::tbb::blocked_range<std::size_t>(begin, end), [&](const auto& range) {
                    State& state = states_.local();
                    for (std::size_t i = range.begin(); i < range.end(); ++i) { f(state, i); }
                });
            });
        }

      private:
        std::size_t count_;
        ::tbb::global_control limit_; // else oneTBB ignores, with a warning, what exceeds the processor
        ::tbb::task_arena arena_;
        ::tbb::enumerable_thread_specific<State> states_;
    };
    /// Those of the processor, at least one.
    static std::size_t available_threads() { return (std::max)(1u, std::thread::hardware_concurrency()); }
};
/// What work on many rows uses unless told otherwise: threads where LOGITSTAT_TBB is defined.
using preferred_execution = threaded;
#else
/// What work on many rows uses unless told otherwise: one thread, since LOGITSTAT_TBB is not defined.
using preferred_execution = serial;
#endif

} // namespace logitstat
