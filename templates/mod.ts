/**
 * The templates of `engine create`, with every file imported as text so that it is part of the
 * program.
 *
 * Files that tools would apply to this repository (`worker.ts`, `deno.json`, `.gitignore`) have
 * other names here. `engine create` replaces `{{name}}` by the name of the worker or project, and
 * `{{engine}}` by the relative path from the file's directory to the project's `.engine`.
 *
 * @module
 */
import bareConfig from "./bare/config.yaml" with { type: "text" };
import bareReadme from "./bare/README.md" with { type: "text" };
import gitignore from "./quickstart/gitignore.txt" with { type: "text" };
import jobsConfig from "./jobs/config.yaml" with { type: "text" };
import jobsReadme from "./jobs/README.md" with { type: "text" };
import primeManifest from "./jobs/workers/prime-worker/engine.worker.yaml" with { type: "text" };
import primeSource from "./jobs/workers/prime-worker/prime_worker.py" with { type: "text" };
import webImports from "./jobs/workers/web-worker/deno.json.txt" with { type: "text" };
import webManifest from "./jobs/workers/web-worker/engine.worker.yaml" with { type: "text" };
import webPage from "./jobs/workers/web-worker/page.html" with { type: "text" };
import webSource from "./jobs/workers/web-worker/worker.ts.txt" with { type: "text" };
import quickstartConfig from "./quickstart/config.yaml" with { type: "text" };
import quickstartReadme from "./quickstart/README.md" with { type: "text" };
import callerImports from "./quickstart/workers/caller-worker/deno.json.txt" with { type: "text" };
import callerManifest from "./quickstart/workers/caller-worker/engine.worker.yaml" with {
  type: "text",
};
import callerSource from "./quickstart/workers/caller-worker/worker.ts.txt" with { type: "text" };
import callerTest from "./quickstart/workers/caller-worker/worker_test.ts.txt" with {
  type: "text",
};
import mathManifest from "./quickstart/workers/math-worker/engine.worker.yaml" with {
  type: "text",
};
import mathSource from "./quickstart/workers/math-worker/math_worker.py" with { type: "text" };
import mathTest from "./quickstart/workers/math-worker/test_math_worker.py" with { type: "text" };
import mathPytest from "./quickstart/workers/math-worker/pytest.ini" with { type: "text" };
import requirements from "./quickstart/workers/math-worker/requirements.txt" with { type: "text" };
import nodeTest from "./node-worker/worker.test.js.txt" with { type: "text" };
import primePytest from "./jobs/workers/prime-worker/pytest.ini" with { type: "text" };
import primeTest from "./jobs/workers/prime-worker/test_prime_worker.py" with { type: "text" };
import webTest from "./jobs/workers/web-worker/worker_test.ts.txt" with { type: "text" };
import nodeManifest from "./node-worker/engine.worker.yaml" with { type: "text" };
import nodePackage from "./node-worker/package.json.txt" with { type: "text" };
import nodeSource from "./node-worker/worker.js.txt" with { type: "text" };
import pythonManifest from "./python-worker/engine.worker.yaml" with { type: "text" };
import pythonPytest from "./python-worker/pytest.ini" with { type: "text" };
import pythonTest from "./python-worker/test_worker.py" with { type: "text" };
import pythonSource from "./python-worker/worker.py" with { type: "text" };
import typescriptImports from "./typescript-worker/deno.json.txt" with { type: "text" };
import typescriptManifest from "./typescript-worker/engine.worker.yaml" with { type: "text" };
import typescriptTest from "./typescript-worker/worker_test.ts.txt" with { type: "text" };
import typescriptSource from "./typescript-worker/worker.ts.txt" with { type: "text" };

/** A directory that `engine create` writes. */
export interface Template {
  /** Value of `--template`. */
  readonly name: string;
  /** One line for listings. */
  readonly summary: string;
  /** A project has a config.yaml; a worker belongs to a project. */
  readonly kind: "project" | "worker";
  /** Text by path in the new directory, in the order in which `engine create` lists them. */
  readonly files: Readonly<Record<string, string>>;
}

/** All templates. */
export const templates: readonly Template[] = [
  {
    name: "quickstart",
    summary: "A project with a Python and a TypeScript worker that call each other",
    kind: "project",
    files: {
      "config.yaml": quickstartConfig,
      "README.md": quickstartReadme,
      ".gitignore": gitignore,
      "workers/math-worker/engine.worker.yaml": mathManifest,
      "workers/math-worker/requirements.txt": requirements,
      "workers/math-worker/math_worker.py": mathSource,
      "workers/math-worker/test_math_worker.py": mathTest,
      "workers/math-worker/pytest.ini": mathPytest,
      "workers/caller-worker/engine.worker.yaml": callerManifest,
      "workers/caller-worker/deno.json": callerImports,
      "workers/caller-worker/worker.ts": callerSource,
      "workers/caller-worker/worker_test.ts": callerTest,
    },
  },
  {
    name: "jobs",
    summary: "A project with background jobs, a schedule and a page that shows progress live",
    kind: "project",
    files: {
      "config.yaml": jobsConfig,
      "README.md": jobsReadme,
      ".gitignore": gitignore,
      "workers/web-worker/engine.worker.yaml": webManifest,
      "workers/web-worker/deno.json": webImports,
      "workers/web-worker/worker.ts": webSource,
      "workers/web-worker/worker_test.ts": webTest,
      "workers/web-worker/page.html": webPage,
      "workers/prime-worker/engine.worker.yaml": primeManifest,
      "workers/prime-worker/requirements.txt": requirements,
      "workers/prime-worker/prime_worker.py": primeSource,
      "workers/prime-worker/test_prime_worker.py": primeTest,
      "workers/prime-worker/pytest.ini": primePytest,
    },
  },
  {
    name: "bare",
    summary: "A project with state and HTTP, without workers of its own",
    kind: "project",
    files: { "config.yaml": bareConfig, "README.md": bareReadme, ".gitignore": gitignore },
  },
  {
    name: "python-worker",
    summary: "A Python worker for a project",
    kind: "worker",
    files: {
      "engine.worker.yaml": pythonManifest,
      "requirements.txt": requirements,
      "worker.py": pythonSource,
      "test_worker.py": pythonTest,
      "pytest.ini": pythonPytest,
    },
  },
  {
    name: "typescript-worker",
    summary: "A TypeScript worker for a project",
    kind: "worker",
    files: {
      "engine.worker.yaml": typescriptManifest,
      "deno.json": typescriptImports,
      "worker.ts": typescriptSource,
      "worker_test.ts": typescriptTest,
    },
  },
  {
    name: "node-worker",
    summary: "A JavaScript worker on Node and npm for a project",
    kind: "worker",
    files: {
      "engine.worker.yaml": nodeManifest,
      "package.json": nodePackage,
      "worker.js": nodeSource,
      "worker.test.js": nodeTest,
    },
  },
];
