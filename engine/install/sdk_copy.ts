/**
 * Writes the SDKs into a project, so that workers run before anything is on a registry.
 *
 * The engine embeds the files as text, so a compiled program and one that runs from an https
 * address have them too. A file is written atomically and only when it differs, because workers may
 * be reading it.
 *
 * @module
 */
import npmBrowserTypes from "../../sdk/npm/engine_sdk_browser.d.ts" with { type: "text" };
import npmBrowserModule from "../../sdk/npm/engine_sdk_browser.js" with { type: "text" };
import npmTestingTypes from "../../sdk/npm/engine_sdk_testing.d.ts" with { type: "text" };
import npmTestingModule from "../../sdk/npm/engine_sdk_testing.js" with { type: "text" };
import npmTypes from "../../sdk/npm/engine_sdk.d.ts" with { type: "text" };
import npmModule from "../../sdk/npm/engine_sdk.js" with { type: "text" };
import npmPackage from "../../sdk/npm/package.json" with { type: "text" };
import initPy from "../../sdk/python/src/engine_sdk/__init__.py" with { type: "text" };
import callsPy from "../../sdk/python/src/engine_sdk/_calls.py" with { type: "text" };
import channelSocketPy from "../../sdk/python/src/engine_sdk/_channel_socket.py" with {
  type: "text",
};
import httpStreamPy from "../../sdk/python/src/engine_sdk/_http_stream.py" with { type: "text" };
import channelsPy from "../../sdk/python/src/engine_sdk/_channels.py" with { type: "text" };
import codecPy from "../../sdk/python/src/engine_sdk/_codec.py" with { type: "text" };
import configurationPy from "../../sdk/python/src/engine_sdk/_configuration.py" with {
  type: "text",
};
import contextPy from "../../sdk/python/src/engine_sdk/_context.py" with { type: "text" };
import directPy from "../../sdk/python/src/engine_sdk/_direct.py" with { type: "text" };
import errorsPy from "../../sdk/python/src/engine_sdk/_errors.py" with { type: "text" };
import fastPy from "../../sdk/python/src/engine_sdk/_fast.py" with { type: "text" };
import handlersPy from "../../sdk/python/src/engine_sdk/_handlers.py" with { type: "text" };
import leasePy from "../../sdk/python/src/engine_sdk/_lease.py" with { type: "text" };
import loggerPy from "../../sdk/python/src/engine_sdk/_logger.py" with { type: "text" };
import otlpPy from "../../sdk/python/src/engine_sdk/_otlp.py" with { type: "text" };
import outputMarksPy from "../../sdk/python/src/engine_sdk/_output_marks.py" with { type: "text" };
import processPy from "../../sdk/python/src/engine_sdk/_process.py" with { type: "text" };
import reconnectPy from "../../sdk/python/src/engine_sdk/_reconnect.py" with { type: "text" };
import registerPy from "../../sdk/python/src/engine_sdk/_register.py" with { type: "text" };
import registrationsPy from "../../sdk/python/src/engine_sdk/_registrations.py" with {
  type: "text",
};
import requestsPy from "../../sdk/python/src/engine_sdk/_requests.py" with { type: "text" };
import sessionPy from "../../sdk/python/src/engine_sdk/_session.py" with { type: "text" };
import shapesPy from "../../sdk/python/src/engine_sdk/_shapes.py" with { type: "text" };
import stateWatchPy from "../../sdk/python/src/engine_sdk/_state_watch.py" with { type: "text" };
import streamsPy from "../../sdk/python/src/engine_sdk/_streams.py" with { type: "text" };
import telemetryPy from "../../sdk/python/src/engine_sdk/_telemetry.py" with { type: "text" };
import threadsPy from "../../sdk/python/src/engine_sdk/_threads.py" with { type: "text" };
import testBuiltinsPy from "../../sdk/python/src/engine_sdk/_test_builtins.py" with {
  type: "text",
};
import testRoutingPy from "../../sdk/python/src/engine_sdk/_test_routing.py" with {
  type: "text",
};
import testingHookPy from "../../sdk/python/src/engine_sdk/_testing_hook.py" with {
  type: "text",
};
import testingPy from "../../sdk/python/src/engine_sdk/testing.py" with { type: "text" };
import transportPy from "../../sdk/python/src/engine_sdk/_transport.py" with { type: "text" };
import triggerTypesPy from "../../sdk/python/src/engine_sdk/_trigger_types.py" with {
  type: "text",
};
import typedPy from "../../sdk/python/src/engine_sdk/_typed.py" with { type: "text" };
import workerPy from "../../sdk/python/src/engine_sdk/_worker.py" with { type: "text" };
import workerThreadPy from "../../sdk/python/src/engine_sdk/_worker_thread.py" with {
  type: "text",
};
import pyTyped from "../../sdk/python/src/engine_sdk/py.typed" with { type: "text" };

/** Every file of the Python package `engine_sdk`, by name. */
export const PYTHON_FILES: Readonly<Record<string, string>> = {
  "__init__.py": initPy,
  "_calls.py": callsPy,
  "_channel_socket.py": channelSocketPy,
  "_channels.py": channelsPy,
  "_http_stream.py": httpStreamPy,
  "_codec.py": codecPy,
  "_configuration.py": configurationPy,
  "_context.py": contextPy,
  "_direct.py": directPy,
  "_errors.py": errorsPy,
  "_fast.py": fastPy,
  "_handlers.py": handlersPy,
  "_lease.py": leasePy,
  "_logger.py": loggerPy,
  "_otlp.py": otlpPy,
  "_output_marks.py": outputMarksPy,
  "_process.py": processPy,
  "_reconnect.py": reconnectPy,
  "_register.py": registerPy,
  "_registrations.py": registrationsPy,
  "_requests.py": requestsPy,
  "_session.py": sessionPy,
  "_shapes.py": shapesPy,
  "_state_watch.py": stateWatchPy,
  "_streams.py": streamsPy,
  "_telemetry.py": telemetryPy,
  "_threads.py": threadsPy,
  "_transport.py": transportPy,
  "_trigger_types.py": triggerTypesPy,
  "_typed.py": typedPy,
  "_test_builtins.py": testBuiltinsPy,
  "_test_routing.py": testRoutingPy,
  "_testing_hook.py": testingHookPy,
  "testing.py": testingPy,
  "_worker.py": workerPy,
  "_worker_thread.py": workerThreadPy,
  "py.typed": pyTyped,
};

/** Every file of the npm package `engine-sdk`, by name. */
export const TYPESCRIPT_FILES: Readonly<Record<string, string>> = {
  "package.json": npmPackage,
  "engine_sdk.js": npmModule,
  "engine_sdk.d.ts": npmTypes,
  "engine_sdk_browser.js": npmBrowserModule,
  "engine_sdk_browser.d.ts": npmBrowserTypes,
  "engine_sdk_testing.js": npmTestingModule,
  "engine_sdk_testing.d.ts": npmTestingTypes,
};

/** The dependency of the Python SDK, for pip. */
export const PYTHON_REQUIREMENT = "websockets>=13.0,<18";

/** The folder of all SDKs. */
export function sdkDirectory(dataDirectory: string): string {
  return `${dataDirectory}/sdk`;
}

/** The folder that has to be on `PYTHONPATH` to import `engine_sdk`. */
export function pythonSdkDirectory(dataDirectory: string): string {
  return `${sdkDirectory(dataDirectory)}/python`;
}

/** The npm package `engine-sdk`, as a folder. */
export function npmSdkDirectory(dataDirectory: string): string {
  return `${sdkDirectory(dataDirectory)}/typescript`;
}

/**
 * Writes the SDKs to `sdk/python/engine_sdk` and `sdk/typescript` below the data directory.
 *
 * Files of an older engine that are no longer part of the Python package are removed.
 */
export async function writeSdkCopies(dataDirectory: string): Promise<void> {
  const python = `${pythonSdkDirectory(dataDirectory)}/engine_sdk`;
  await writeFiles(python, PYTHON_FILES);
  await writeFiles(npmSdkDirectory(dataDirectory), TYPESCRIPT_FILES);
  for await (const { name, isFile } of Deno.readDir(python)) {
    if (isFile && !Object.hasOwn(PYTHON_FILES, name)) await Deno.remove(`${python}/${name}`);
  }
}

/** Writes files of a directory that differ, each atomically. */
export async function writeFiles(
  directory: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  await Deno.mkdir(directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    const path = `${directory}/${name}`;
    const present = await Deno.readTextFile(path).catch(() => undefined);
    if (present === text) continue;
    const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}.tmp`;
    await Deno.writeTextFile(temporary, text);
    await Deno.rename(temporary, path);
  }
}
