#error "the core includes <nlohmann/json.hpp>"
