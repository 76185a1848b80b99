#error "the core includes <boost/interprocess/file_mapping.hpp>"
