#error "a header that must do without nlohmann-json includes it"
