#if CUDA_VERSION >= 12030
    if (follows && pipeline->early[kernel]) {
        CUlaunchAttribute attribute;
        CUlaunchConfig config;
        memset(&attribute, 0, sizeof attribute);
        memset(&config, 0, sizeof config);
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        config.gridDimX = grid[0];
        config.gridDimY = grid[1];
        config.gridDimZ = grid[2];
        config.blockDimX = kernels[kernel].threads;
        config.blockDimY = 1;
        config.blockDimZ = 1;
        config.sharedMemBytes = dynamic_shared_bytes;
        config.hStream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
        return cuLaunchKernelEx(&config, pipeline->functions[kernel], arguments, NULL);
    }
#else
    (void)follows;
#endif
