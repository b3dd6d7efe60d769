static bool in_range(const @name@_params *params)
{
    return @conditions@;
}

