import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.io.StringWriter;
import javax.xml.namespace.QName;
import javax.xml.transform.OutputKeys;
import javax.xml.transform.Source;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import javax.xml.ws.BindingType;
import javax.xml.ws.Dispatch;
import javax.xml.ws.Provider;
import javax.xml.ws.Service;
import javax.xml.ws.ServiceMode;
import javax.xml.ws.WebServiceException;
import javax.xml.ws.WebServiceProvider;
import javax.xml.ws.soap.AddressingFeature;
import javax.xml.ws.soap.SOAPBinding;
import org.apache.cxf.binding.soap.Soap12;
import org.apache.cxf.binding.soap.SoapFault;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.ws.addressing.WSAddressingFeature;

/**
 * SOAP 1.2 by Apache CXF. Each argument is the address of a service to offer, which answers with what it gets, or with a fault if that is named refuse.
 * Of what is named tell the output has a line.
 * Each line of the standard input is an address, yes or no for WS-Addressing, and an element to send there; each line of the output tells what came of it.
 */
public final class CXF {
    @WebServiceProvider
    @ServiceMode(Service.Mode.PAYLOAD)
    @BindingType(SOAPBinding.SOAP12HTTP_BINDING)
    public static final class Echo implements Provider<Source> {
        @Override
        public Source invoke(Source request) {
            String element = text(request);
            if (element.startsWith("<tell")) {
                System.out.println("told " + element);
            }
            if (!element.startsWith("<refuse")) {
                return new StreamSource(new StringReader(element));
            }
            throw new SoapFault("the queue is full", Soap12.getInstance().getReceiver());
        }
    }

    public static void main(String[] args) throws Exception {
        for (String address : args) {
            JaxWsServerFactoryBean factory = new JaxWsServerFactoryBean();
            factory.setServiceBean(new Echo());
            factory.setAddress(address);
            factory.getFeatures().add(new WSAddressingFeature());
            factory.create();
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 3);
            System.out.println(call(words[0], words[1].equals("yes"), words[2]));
        }
    }

    private static String call(String address, boolean addressing, String element) {
        QName name = new QName("urn:vignette", "Echo");
        QName port = new QName("urn:vignette", "EchoPort");
        Service service = Service.create(name);
        service.addPort(port, SOAPBinding.SOAP12HTTP_BINDING, address);
        Dispatch<Source> dispatch = service.createDispatch(port, Source.class, Service.Mode.PAYLOAD, new AddressingFeature(addressing));
        try {
            return "answer " + text(dispatch.invoke(new StreamSource(new StringReader(element))));
        } catch (WebServiceException e) {
            return e.getCause() instanceof SoapFault fault ? "fault " + fault.getFaultCode().getLocalPart() + " " + fault.getMessage() : "failed " + e;
        }
    }

    private static String text(Source source) {
        try {
            StringWriter out = new StringWriter();
            Transformer transformer = TransformerFactory.newInstance().newTransformer();
            transformer.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
            transformer.transform(source, new StreamResult(out));
            return out.toString();
        } catch (javax.xml.transform.TransformerException e) {
            throw new IllegalStateException(e);
        }
    }
}
