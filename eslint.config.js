import js from "@eslint/js";
import globals from "globals";

// Rules that catch faults; how the code is laid out is Prettier's.
export default [
  { ignores: ["site/**", ".venv/", "runs/", "data/", "benchmarks/out/"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "default-case-last": "error",
      eqeqeq: "error",
      // Retired words; CONTRIBUTING.md, "Words", has what to say.
      "id-denylist": [
        "error",
        "carried",
        "dressed",
        "era",
        "hear",
        "laps",
        "lit",
        "mounted",
        "owed",
      ],
      "max-len": [
        "error",
        {
          code: 100,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreUrls: true,
          ignorePattern: "@import|@type",
        },
      ],
      "no-await-in-loop": "error",
      "no-constructor-return": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-promise-executor-return": "error",
      "no-return-assign": "error",
      "no-self-compare": "error",
      "no-sequences": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-throw-literal": "error",
      "no-unreachable-loop": "error",
      "no-unused-expressions": "error",
      "no-unused-vars": [
        "error",
        { args: "all", argsIgnorePattern: "^_", ignoreRestSiblings: true },
      ],
      "no-use-before-define": ["error", { functions: false, variables: false, classes: false }],
      "no-useless-rename": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      radix: "error",
    },
  },
  { files: ["*.js", "tests/**"], languageOptions: { globals: globals.nodeBuiltin } },
];
