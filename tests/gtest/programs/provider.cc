extern "C" int GetProvider() { return 42; }
