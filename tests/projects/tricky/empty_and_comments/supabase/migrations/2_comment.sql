-- nothing
/* at all */