#pragma once

namespace testing {

/// Is this a build with AddressSanitizer? Its shadow, an eighth of all that is looked at, counts as the program's
/// memory.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool has_shadow_memory = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool has_shadow_memory = true;
#else
inline constexpr bool has_shadow_memory = false;
#endif
#else
inline constexpr bool has_shadow_memory = false;
#endif

} // namespace testing
