# The target logitstat::dispatch: the kernels over rows of logits, compiled for several instruction sets; a program that
# links it uses the widest one that the processor has, whatever the program is compiled for itself.
#
# Included where logitstat::logitstat is defined: by the project itself, and by find_package(logitstat COMPONENTS dispatch)
# in the project of a user. So the library is compiled where it is used, and what is installed stays free of binaries.
cmake_minimum_required(VERSION 3.21)

# The last option of a kind counts: what the project's or the caller's flags say of the processor ends here.
set(logitstat_avx2_options -march=x86-64 -mtune=generic -mavx2 -mfma -mf16c) # bench/ compiles its peers with them, too

function(logitstat_add_dispatch)
  set(avx512_options ${logitstat_avx2_options} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
  include(CheckCXXSourceCompiles)
  string(JOIN " " CMAKE_REQUIRED_FLAGS ${avx512_options})
  check_cxx_source_compiles("
    #if !defined(__GNUC__) || !defined(__x86_64__) || !defined(__AVX512VL__)
    #error no
    #endif
    int main() { return __builtin_cpu_supports(\"avx512vl\"); }" LOGITSTAT_X86_UNITS)

  add_library(logitstat_dispatch STATIC)
  add_library(logitstat::dispatch ALIAS logitstat_dispatch)
  target_link_libraries(logitstat_dispatch PUBLIC logitstat::logitstat)
  target_compile_definitions(logitstat_dispatch INTERFACE LOGITSTAT_DISPATCH)
  set_target_properties(logitstat_dispatch PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)

  # unit(SET ARCHITECTURE NAME [MORE text] [OPTIONS option...]): a translation unit with the kernels for an architecture of
  # xsimd's.
  macro(unit set architecture name)
    cmake_parse_arguments(given "" "MORE" "OPTIONS" ${ARGN})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/dispatch/${set}.cpp)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
      "#include \"logitstat/simd/kernel_unit.hpp\"\n\nLOGITSTAT_KERNEL_UNIT(${set}, ${architecture}, ${name})\n@given_MORE@\n")
    target_sources(logitstat_dispatch PRIVATE ${file})
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "$<$<NOT:$<CXX_COMPILER_ID:MSVC>>:-O3>;${given_OPTIONS}")
  endmacro()
  if(LOGITSTAT_X86_UNITS)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      list(APPEND avx512_options -Wno-maybe-uninitialized -Wno-uninitialized) # of its own headers: its bug 105593
    endif()
    unit(baseline xsimd::sse2 \"sse2\" MORE "LOGITSTAT_KERNEL_CHOICE(true)" OPTIONS -march=x86-64 -mtune=generic)
    unit(avx2 xsimd::fma3<xsimd::avx2> \"avx2\" OPTIONS ${logitstat_avx2_options})
    unit(avx512 xsimd::avx512bw \"avx512\" OPTIONS ${avx512_options})
  else()
    unit(baseline xsimd::default_arch xsimd::default_arch::name\(\) MORE "LOGITSTAT_KERNEL_CHOICE(false)")
  endif()
endfunction()

if(NOT TARGET logitstat::dispatch)
  logitstat_add_dispatch()
endif()
