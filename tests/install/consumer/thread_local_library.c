/* Takes thread-local memory of the kind that runs out, as some libraries do. */
__attribute__((tls_model("initial-exec"))) __thread long words[6] = {1};

long* Words(void);
long* Words(void) { return words; }
