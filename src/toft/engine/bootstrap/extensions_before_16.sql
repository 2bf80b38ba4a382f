create extension pgjwt with schema extensions;
