/* Runs take no Params. */
typedef struct @name@_params @name@_params;

