/* The Params that are given with each run. */
typedef struct @name@_params {
@fields@
} @name@_params;

/* The values above, to change some of them. */
@name@_params @name@_default_params(void);

