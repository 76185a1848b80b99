#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

/// What mutate.py writes into the headers: every operator that it can change asks, when the program runs, whether it is
/// the one that is wrong this time. So one build serves all mutants. Included ahead of everything else, by -include.
///
/// An operator `a < b` becomes `a < binary<...>() < b`, which keeps precedence and associativity without a parser.
/// Constant expressions are what they were.
namespace logitstat_mutation {

inline unsigned char reached[LOGITSTAT_MUTANTS + 1]; ///< mutants whose code ran

/// The mutant that is on, from the environment; 0: none.
inline int active_from_environment() {
    const char* const number = std::getenv("LOGITSTAT_MUTANT");
    return number ? std::atoi(number) : 0;
}
inline const int active = active_from_environment();

/// Writes what was reached when the program ends, if the environment names a file.
inline const struct Record {
    ~Record() {
        const char* const path = std::getenv("LOGITSTAT_MUTANTS_REACHED");
        std::FILE* const file = path ? std::fopen(path, "w") : nullptr;
        if (!file) { return; }
        for (int id = 1; id <= LOGITSTAT_MUTANTS; ++id) {
            if (reached[id]) { std::fprintf(file, "%d\n", id); }
        }
        std::fclose(file);
    }
} record;

constexpr bool on(int id) {
    if (std::is_constant_evaluated()) { return false; }
    reached[id] = 1;
    return active == id;
}

/// A mutant that would not compile, as `"a" - text` would not.
[[noreturn]] inline void does_not_compile() { std::_Exit(250); }

/// A literal and, as mutants Id, Id + 1, ..., what stands in its place.
template <int Id, class T, class... A> constexpr T literal(T value, A... alternatives) {
    int id = Id;
    ((value = on(id++) ? static_cast<T>(alternatives) : value), ...);
    return value;
}

/// In front of a statement that mutant Id leaves out.
template <int Id> constexpr bool keep() { return !on(Id); }

/// A condition that mutant Id turns round.
template <int Id, class T> constexpr bool flip(T&& condition) { return static_cast<bool>(condition) != on(Id); }

/// `!x`, which mutant Id makes x.
template <int Id> struct negation {};
template <int Id, class T> constexpr bool operator->*(negation<Id>, T&& x) { return static_cast<bool>(x) == on(Id); }

/// `a && b` (And) or `a || b`, which mutant Id swaps. The operands are lambdas: b may not be evaluated.
template <int Id, bool And, class A, class B> constexpr bool logic(A a, B b) {
    return And != on(Id) ? a() && b() : a() || b();
}

template <char> struct operation;
/// Operators of two operands: TOKEN for the operation NAME, and that of a `binary` between its operands.
template <int Id, char Original, char... Alternatives> struct binary {};
template <class A, int Id, char Original, char... Alternatives> struct with_left {
    A&& left;

    template <class B> constexpr auto with_right(B&& right) {
        using Result = decltype(operation<Original>()(std::forward<A>(left), std::forward<B>(right)));
        if (!std::is_constant_evaluated()) {
            int id = Id, hit = -1, index = 0;
            ((hit = on(id++) ? index : hit, ++index, static_cast<void>(Alternatives)), ...);
            if (hit >= 0) {
                index = 0;
                return choose<Result, B, Alternatives...>(hit, right);
            }
        }
        return operation<Original>()(std::forward<A>(left), std::forward<B>(right));
    }

  private:
    template <class Result, class B, char First, char... Rest> constexpr Result choose(int hit, B& right) {
        if constexpr (sizeof...(Rest) > 0) {
            if (hit > 0) { return choose<Result, B, Rest...>(hit - 1, right); }
        }
        if constexpr (std::is_invocable_r_v<Result, operation<First>, A&, B&>) {
            return static_cast<Result>(operation<First>()(left, right));
        }
        does_not_compile();
    }
};
#define LOGITSTAT_OPERATION(NAME, TOKEN)                                                                               \
    template <> struct operation<NAME> {                                                                               \
        template <class A, class B>                                                                                    \
        constexpr auto operator()(A&& a, B&& b) const -> decltype(std::forward<A>(a) TOKEN std::forward<B>(b)) {       \
            return std::forward<A>(a) TOKEN std::forward<B>(b);                                                        \
        }                                                                                                              \
    };                                                                                                                 \
    template <class A, int Id, char Original, char... Alternatives>                                                    \
    constexpr auto operator TOKEN(A&& left, binary<Id, Original, Alternatives...>) {                                   \
        return with_left<A, Id, Original, Alternatives...>{std::forward<A>(left)};                                     \
    }                                                                                                                  \
    template <class A, int Id, char Original, char... Alternatives, class B>                                           \
    constexpr auto operator TOKEN(with_left<A, Id, Original, Alternatives...>&& left, B&& right) {                     \
        return left.with_right(std::forward<B>(right));                                                                \
    }
LOGITSTAT_OPERATION('<', <)
LOGITSTAT_OPERATION('l', <=)
LOGITSTAT_OPERATION('>', >)
LOGITSTAT_OPERATION('g', >=)
LOGITSTAT_OPERATION('=', ==)
LOGITSTAT_OPERATION('!', !=)
LOGITSTAT_OPERATION('+', +)
LOGITSTAT_OPERATION('-', -)
LOGITSTAT_OPERATION('*', *)
LOGITSTAT_OPERATION('/', /)
#undef LOGITSTAT_OPERATION

/// The left side of `x += y` and its like: Mutated is what mutant Id does.
template <int Id, char Mutated, class T> struct accumulating {
    T& x;
    template <class Y> constexpr T& operator+=(Y&& y) { return update<'+'>(y); }
    template <class Y> constexpr T& operator-=(Y&& y) { return update<'-'>(y); }
    template <class Y> constexpr T& operator*=(Y&& y) { return update<'*'>(y); }
    template <class Y> constexpr T& operator/=(Y&& y) { return update<'/'>(y); }

  private:
    template <char Original, class Y> constexpr T& update(Y& y) {
        if (!on(Id)) { return x = static_cast<T>(operation<Original>()(x, y)); }
        if constexpr (std::is_invocable_v<operation<Mutated>, T&, Y&>) {
            return x = static_cast<T>(operation<Mutated>()(x, y));
        }
        does_not_compile();
    }
};
template <int Id, char Mutated, class T> constexpr accumulating<Id, Mutated, T> accumulate(T& x) { return {x}; }

/// std::min, which mutant Id makes std::max, and the reverse.
template <int Id, class T> constexpr const T& min(const T& a, const T& b) {
    return on(Id) ? (std::max)(a, b) : (std::min)(a, b);
}
template <int Id, class T> constexpr const T& max(const T& a, const T& b) {
    return on(Id) ? (std::min)(a, b) : (std::max)(a, b);
}

/// Functions that mutant Id leaves out.
#define LOGITSTAT_DROPPED(NAME)                                                                                        \
    template <int Id, class T> auto NAME(T x) { return on(Id) ? static_cast<decltype(std::NAME(x))>(x) : std::NAME(x); }
LOGITSTAT_DROPPED(sqrt)
LOGITSTAT_DROPPED(abs)
LOGITSTAT_DROPPED(exp)
LOGITSTAT_DROPPED(expm1)
LOGITSTAT_DROPPED(floor)
LOGITSTAT_DROPPED(nearbyint)
#undef LOGITSTAT_DROPPED

} // namespace logitstat_mutation
