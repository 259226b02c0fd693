/**
 * Claims about pages: requests on a port for lines that ask for no line.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { AnswerPage } from "../../engine/ports/connection.ts";
import { type Claim, Port } from "./connection_setup.ts";

const answerPage: AnswerPage = ({ path, query, headers }) => {
  if (path === "/metrics") {
    const body = `calls ${query.get("n")} ${headers.get("x-who")} ü\n`;
    return Promise.resolve({ status: 200, contentType: "text/plain; version=0.0.4", body });
  }
  if (path === "/secret") return Promise.resolve({ status: 401, message: "No token" });
  if (path === "/large") {
    const body = "x".repeat(8 * 1024 * 1024);
    return Promise.resolve({ status: 503, contentType: "text/plain", body });
  }
  return undefined;
};

export const PAGE_CLAIMS: readonly Claim[] = [
  {
    name: "a page is answered with its status, its type and its text",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/metrics?n=7", { headers: { "x-who": "me" } });

      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4");
      assert.equal(await answer.text(), "calls 7 me ü\n");
    },
  },
  {
    name: "HEAD gets what GET gets, without the text",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/metrics?n=7", { method: "HEAD" });

      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4");
      assert.equal(await answer.text(), "");
    },
  },
  {
    name: "a page of several megabytes arrives whole",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/large");

      assert.equal(answer.status, 503);
      assert.equal((await answer.text()).length, 8 * 1024 * 1024);
    },
  },
  {
    name: "a page that is refused says why, and how to come in",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/secret");

      assert.equal(answer.status, 401);
      assert.equal(answer.headers.get("www-authenticate"), "Bearer");
      assert.equal(await answer.text(), "No token\n");
    },
  },
  {
    name: "what is no page is told that lines are spoken here, by any method",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      for (const [path, method] of [["/", "GET"], ["/metrics", "POST"], ["/no", "DELETE"]]) {
        const answer = await port.fetch(path!, { method: method! });

        assert.equal(answer.status, 426);
        await answer.text();
      }
    },
  },
  {
    name: "a line opens at the path of a page all the same",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const { client, line } = await port.open({ path: "/metrics" });
      await client.text("hello");
      await client.close(1000);
      await line.end();

      assert.deepEqual(line.texts, ["hello"]);
    },
  },
];
