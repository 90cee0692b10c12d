// Passes every request on to UPSTREAM with TOKEN, and nothing else changed. Ends with its input.

import http from "node:http";

const { hostname, port } = new URL(process.env.UPSTREAM);
const authorization = `Bearer ${process.env.TOKEN}`;

const server = http.createServer((request, response) => {
  const { method, url: path } = request;
  const headers = { ...request.headers, authorization };
  const onward = http.request({ hostname, port, method, path, headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume();
process.stdin.on("end", () => process.exit());
