// The run behind the page: speaks with the server as a player speaks with its worker.

"use strict";

(() => {
  class RemoteRun {
    constructor() {
      const { host, search } = location;
      this.socket = new WebSocket(`ws://${host}/run${search}`);
      this.opened = new Promise((done) => this.socket.addEventListener("open", done));
      this.socket.addEventListener("message", ({ data }) => {
        const message = JSON.parse(data);
        if (message.poses) message.poses = Float64Array.from(message.poses);
        this.onmessage({ data: message });
      });
      this.socket.addEventListener("close", ({ reason }) => {
        const sentence = reason || "the run behind this page has ended";
        this.onmessage({ data: { kind: "closed", sentence } });
      });
    }

    async postMessage(message) {
      await this.opened;
      if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    }
  }

  window.mbsfmuRemoteRun = RemoteRun;
})();
