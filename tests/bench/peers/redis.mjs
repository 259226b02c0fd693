/**
 * Values in Redis: `REDIS_PORT`.
 *
 * @module
 */
import process from "node:process";
import { followOperations } from "./requester.mjs";

/** Keys that are set and got, in turn. */
const KEYS = 1_000;

const port = Number(process.argv[2]);
const { Redis } = await import("ioredis");
const redis = new Redis({ host: "127.0.0.1", port });
await redis.ping();
await followOperations({
  set: (number, text) => redis.set(`k${number % KEYS}`, JSON.stringify(text)),
  get: async (number) => JSON.parse(await redis.get(`k${number % KEYS}`)),
});
