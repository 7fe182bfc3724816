// Links to export a view: files that Python makes from its link (pages/shared/server/exports.py).
import type { Theme } from "./types.ts";

export const FORMATS: Record<string, string> = {
  npz: "arrays (npz)",
  json: "arrays (JSON)",
  py: "Python",
};

// Return the query of a view with the theme of its file.
export const themedQuery = (query: string, theme: Theme) =>
  theme === "dark" ? `${query}&dark=1` : query;

// Return the address of a file that Python makes from the link of a view.
export const exportAddress = (base: string, page: string, format: string, query: string) =>
  new URL(`${base}api/${page}/export.${format}?${query}`, location.href).href;
