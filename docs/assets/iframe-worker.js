// The search of the site runs in a worker, and browsers refuse workers to pages that are opened
// from a folder. For those this class stands in for Worker: it runs the script in a hidden frame.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.ready = false;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.receive(data);
      const script = inner.document.createElement("script");
      script.src = url;
      script.onload = () => this.begin();
      inner.document.body.append(script);
    }

    begin() {
      this.ready = true;
      for (const data of this.waiting.splice(0)) this.postMessage(data);
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      if (this.ready) inner.dispatchEvent(new inner.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    terminate() {
      this.frame.remove();
    }
  }
  // The search looks for the name to find out that its scripts stand beside the page.
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
