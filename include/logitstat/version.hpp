#pragma once

/// The version of the library, also read by CMakeLists.txt: this is the one place where it is written.
#define LOGITSTAT_VERSION_MAJOR 0
#define LOGITSTAT_VERSION_MINOR 1
#define LOGITSTAT_VERSION_PATCH 0
#define LOGITSTAT_VERSION_STRING "0.1.0"
