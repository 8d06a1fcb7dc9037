"""What lies on disk: CMake cache, build graph, compile lines; units, objects, provider, test binary."""
