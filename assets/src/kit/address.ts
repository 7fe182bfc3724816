// Address of a file below /api/assets/VERSION/, from which this module is served too.
const root = import.meta.url.replace(/(\/api\/assets\/[^/]+\/).*/, "$1");

// Return the address of a served file, e.g. asset("theme/figure.css").
export const asset = (path: string) => new URL(path, root).href;
