#error "the core includes <boost/interprocess/mapped_region.hpp>"
